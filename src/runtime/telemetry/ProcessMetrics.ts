import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { programVersion } from "../../application/ProgramVersion.ts"
import { metricRegistry } from "../../application/observability/Instrumentation.ts"

/** Registers a gauge that calls `read` whenever metrics are collected. */
const registerGauge = (name: string, description: string, read: () => number): void => {
  Metric.registerUnsafe(Metric.gauge(name, { description }), metricRegistry, {
    get: () => ({ value: read() }),
    update: () => {},
    modify: () => {}
  })
}

const registerCounter = (name: string, description: string, read: () => number): void => {
  Metric.registerUnsafe(Metric.counter(name, { description, incremental: true }), metricRegistry, {
    get: () => ({ count: read(), incremental: true }),
    update: () => {},
    modify: () => {}
  })
}

/** The sampling interval of the event loop delay. Node adds the interval to every sample. */
const resolutionMs = 20
/**
 * The length of the windows in which the event loop delay is measured. The gauges show the statistics of the last
 * complete window, or of the first window until it is complete.
 */
const window = "15 seconds"

const secondsPerNanosecond = 1e-9

const registerBuildInfo = (): void => {
  Metric.gauge("prompt_retrieval_build_info", {
    description: "Always 1; the labels name the versions of the program and of Node",
    attributes: { version: programVersion, node: process.versions.node }
  }).updateUnsafe(1, metricRegistry)
}

/** Registers metrics of this process, and measures its event loop delay until the scope closes. */
export const measureProcess = Effect.gen(function* () {
  registerBuildInfo()
  registerGauge("prompt_retrieval_process_resident_memory_bytes", "Resident memory of the process", () =>
    process.memoryUsage.rss()
  )
  registerGauge(
    "prompt_retrieval_nodejs_heap_size_used_bytes",
    "JavaScript heap in use",
    () => process.memoryUsage().heapUsed
  )
  registerGauge(
    "prompt_retrieval_nodejs_heap_size_total_bytes",
    "JavaScript heap reserved",
    () => process.memoryUsage().heapTotal
  )
  registerGauge(
    "prompt_retrieval_nodejs_external_memory_bytes",
    "Memory of objects outside the JavaScript heap",
    () => process.memoryUsage().external
  )
  registerGauge(
    "prompt_retrieval_process_start_time_seconds",
    "Start time of the process, in seconds since the epoch",
    () => performance.timeOrigin / 1000
  )
  registerCounter(
    "prompt_retrieval_process_cpu_seconds_total",
    "Processor time used in user and system mode, in seconds",
    () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }
  )

  const delay = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  )
  const excessDelaySeconds = (sample: number): number =>
    Math.max(0, sample - resolutionMs * 1e6) * secondsPerNanosecond
  const readDelay = () =>
    delay.count === 0
      ? { mean: 0, p99: 0, max: 0 }
      : {
          mean: excessDelaySeconds(delay.mean),
          p99: excessDelaySeconds(delay.percentile(99)),
          max: excessDelaySeconds(delay.max)
        }
  let lastWindow: ReturnType<typeof readDelay> | undefined
  const endWindow = Effect.sync(() => {
    lastWindow = readDelay()
    delay.reset()
  })
  yield* Effect.sleep(window).pipe(Effect.andThen(endWindow), Effect.forever, Effect.forkScoped)

  const registerLag = (statistic: keyof ReturnType<typeof readDelay>, description: string) =>
    registerGauge(
      `prompt_retrieval_nodejs_eventloop_lag_${statistic}_seconds`,
      `${description} of the event loop over ${window}`,
      () => (lastWindow ?? readDelay())[statistic]
    )
  registerLag("mean", "Mean delay")
  registerLag("p99", "99th percentile of the delay")
  registerLag("max", "Longest delay")
})
