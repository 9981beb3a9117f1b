import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as References from "effect/References"

/**
 * Wraps a function. If spans are collected, each call runs in a span of the given name. If not, the wrapper costs
 * almost nothing. Use this wrapper for functions that run for every request and need a span. Functions that run rarely
 * get their span from `Effect.fn`, which also records the call site of every call.
 */
export const withSpanIfTraced =
  (name: string) =>
  <Arguments extends ReadonlyArray<unknown>, A, E, R>(call: (...args: Arguments) => Effect.Effect<A, E, R>) =>
  (...args: Arguments): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber): Effect.Effect<A, E, R> => {
      const effect = call(...args)
      return fiber.getRef(References.TracerEnabled)
        ? (Effect.withSpan(effect, name, { captureStackTrace: false }) as Effect.Effect<A, E, R>)
        : effect
    })

/** The context for metrics. It is empty, so Effect uses its process-wide registry of metrics. */
export const metricRegistry = Context.empty()

/**
 * Registers a counter and sets it to 0, so that rates include the first increment. Returns the function that adds 1.
 */
export const registerCounter = (
  name: string,
  description: string,
  attributes: Readonly<Record<string, string>> = {}
): (() => void) => {
  const counter = Metric.counter(name, { description, attributes, incremental: true })
  counter.updateUnsafe(0, metricRegistry)
  return () => counter.updateUnsafe(1, metricRegistry)
}
