import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { metricRegistry } from "../../application/observability/Instrumentation.ts"
import { programVersion } from "../../application/ProgramVersion.ts"

/** Registers a metric whose value `get` reads when metrics are collected. No code updates the metric. */
const register = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State): void => {
  Metric.registerUnsafe(metric, metricRegistry, { get, update: () => {}, modify: () => {} })
}

const registerGauge = (name: string, description: string, read: () => number): void =>
  register(Metric.gauge(`prompt_retrieval_${name}`, { description }), () => ({ value: read() }))

const registerCpuSeconds = (): void => {
  const description = "Processor time used in user and system mode, in seconds"
  const name = "prompt_retrieval_process_cpu_seconds_total"
  register(Metric.counter(name, { description, incremental: true }), () => {
    const { user, system } = process.cpuUsage()
    return { count: (user + system) / 1e6, incremental: true }
  })
}

const registerBuildInfo = (): void => {
  Metric.gauge("prompt_retrieval_build_info", {
    description: "Always 1; the labels name the versions of the program and of Node",
    attributes: { version: programVersion, node: process.versions.node }
  }).updateUnsafe(1, metricRegistry)
}

/** The sampling interval of the event loop delay, in milliseconds. Node adds the interval to every sample. */
const resolutionMs = 20

/** Converts a sample to seconds without the sampling interval. The mean of no samples is NaN, which becomes 0. */
const toExcessSeconds = (sampleNanos: number): number =>
  Math.max(0, (sampleNanos || 0) - resolutionMs * 1e6) / 1e9

/** Registers gauges of the event loop delay in the last 15-second window or, in the first window, since the start. */
const measureDelay = Effect.gen(function* () {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  yield* Effect.acquireRelease(
    Effect.sync(() => delay.enable()),
    () => Effect.sync(() => delay.disable())
  )
  const readDelay = () => ({
    mean: toExcessSeconds(delay.mean),
    p99: toExcessSeconds(delay.percentile(99)),
    max: toExcessSeconds(delay.max)
  })
  let lastWindow: ReturnType<typeof readDelay> | undefined
  const endWindow = Effect.sync(() => {
    lastWindow = readDelay()
    delay.reset()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(endWindow, "15 seconds")))
  for (const [statistic, description] of [
    ["mean", "Mean delay"],
    ["p99", "99th percentile of the delay"],
    ["max", "Longest delay"]
  ] as const)
    registerGauge(
      `nodejs_eventloop_lag_${statistic}_seconds`,
      `${description} of the event loop over 15 seconds`,
      () => (lastWindow ?? readDelay())[statistic]
    )
})

/** Registers metrics of this process, and measures its event loop delay until the scope closes. */
export const measureProcess = Effect.gen(function* () {
  const { memoryUsage } = process
  registerBuildInfo()
  registerCpuSeconds()
  registerGauge("process_resident_memory_bytes", "Resident memory of the process", () => memoryUsage.rss())
  registerGauge("nodejs_heap_size_used_bytes", "JavaScript heap in use", () => memoryUsage().heapUsed)
  registerGauge("nodejs_heap_size_total_bytes", "JavaScript heap reserved", () => memoryUsage().heapTotal)
  registerGauge(
    "nodejs_external_memory_bytes",
    "Memory of objects outside the JavaScript heap",
    () => memoryUsage().external
  )
  registerGauge(
    "process_start_time_seconds",
    "Start time of the process, in seconds since the epoch",
    () => performance.timeOrigin / 1000
  )
  yield* measureDelay
})
