import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** The process-wide metric registry, which an empty context falls back to. */
const registry = Context.empty()

/** Registers a gauge that is computed whenever metrics are read. */
const registerGauge = (name: string, description: string, read: () => number): void => {
  Metric.registerUnsafe(Metric.gauge(name, { description }), registry, {
    get: () => ({ value: read() }),
    update: () => {},
    modify: () => {}
  })
}

/** Registers a counter that is computed whenever metrics are read. */
const registerCounter = (name: string, description: string, read: () => number): void => {
  Metric.registerUnsafe(Metric.counter(name, { description, incremental: true }), registry, {
    get: () => ({ count: read(), incremental: true }),
    update: () => {},
    modify: () => {}
  })
}

/** How often the event loop's delay is sampled, in milliseconds. No sample is shorter than this. */
const resolution = 20
/** The statistics of the event loop's delay cover a window of this length and hold until the next window ends. */
const window = "15 seconds"

const nanoseconds = 1e-9

/** Measures this process until the scope closes: memory, processor time and the delay of its event loop. */
export const measureProcess = Effect.gen(function* () {
  registerGauge("process_resident_memory_bytes", "Resident memory of the process", () =>
    process.memoryUsage.rss()
  )
  registerGauge("nodejs_heap_size_used_bytes", "JavaScript heap in use", () => process.memoryUsage().heapUsed)
  registerGauge(
    "nodejs_heap_size_total_bytes",
    "JavaScript heap reserved",
    () => process.memoryUsage().heapTotal
  )
  registerGauge(
    "nodejs_external_memory_bytes",
    "Memory of objects outside the JavaScript heap",
    () => process.memoryUsage().external
  )
  registerGauge(
    "process_start_time_seconds",
    "When the process started, in seconds since the epoch",
    () => performance.timeOrigin / 1000
  )
  registerCounter(
    "process_cpu_seconds_total",
    "Processor time used, by the user's code and the system",
    () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }
  )

  const delay = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  )
  const excessDelaySeconds = (sample: number): number => Math.max(0, sample - resolution * 1e6) * nanoseconds
  const read = () =>
    delay.count === 0
      ? { mean: 0, p99: 0, max: 0 }
      : {
          mean: excessDelaySeconds(delay.mean),
          p99: excessDelaySeconds(delay.percentile(99)),
          max: excessDelaySeconds(delay.max)
        }
  let lastWindow: ReturnType<typeof read> | undefined
  const endWindow = Effect.sync(() => {
    lastWindow = read()
    delay.reset()
  })
  yield* Effect.sleep(window).pipe(Effect.andThen(endWindow), Effect.forever, Effect.forkScoped)

  const registerLag = (statistic: keyof ReturnType<typeof read>, description: string) =>
    registerGauge(
      `nodejs_eventloop_lag_${statistic}_seconds`,
      `${description} of the event loop over ${window}`,
      () => (lastWindow ?? read())[statistic]
    )
  registerLag("mean", "Mean delay")
  registerLag("p99", "99th percentile of the delay")
  registerLag("max", "Longest delay")
})
