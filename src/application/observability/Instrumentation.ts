import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Tracer from "effect/Tracer"

/** Succeeds with true if spans are collected. */
export const checkIsTraced = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

/**
 * If spans are collected, runs each effectful method of a service in a span such as `Prompts.get`. `Effect.fn` would
 * capture a stack trace and change the context in every call, even if no spans are collected.
 */
export const withSpans = <Service extends object>(name: string, service: Service): Effect.Effect<Service> => {
  const trace =
    (method: string, call: (...args: ReadonlyArray<unknown>) => unknown) =>
    (...args: ReadonlyArray<unknown>) => {
      const result = call(...args)
      return Effect.isEffect(result)
        ? Effect.withSpan(result, `${name}.${method}`, { captureStackTrace: false })
        : result
    }
  const methods = () => Object.entries(service).map(([method, call]) => [method, trace(method, call)])
  return Effect.map(checkIsTraced, (isTraced) => (isTraced ? Object.fromEntries(methods()) : service))
}

/** The context for metrics. The context is empty, so Effect uses its process-wide registry of metrics. */
export const metricRegistry = Context.empty()

/** Registers a counter and sets it to 0, so that rates include the first increment. */
export const registerCounter = (
  name: string,
  description: string,
  attributes: Readonly<Record<string, string>> = {}
): Metric.Counter<number> => {
  const counter = Metric.counter(name, { description, attributes, incremental: true })
  counter.updateUnsafe(0, metricRegistry)
  return counter
}
