import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Effect from "effect/Effect"
import { registerCounter, registerGauge } from "../../application/Metrics.ts"

/** How often the event loop's delay is sampled, in milliseconds; a sample has at least this length. */
const resolution = 20
/** How long a time the figures of the event loop's delay stand for; they hold until the next such time is over. */
const period = "15 seconds"

const nanoseconds = 1e-9

/** Measures this process for as long as the scope is open: memory, processor time and the delay of its event loop. */
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
  const beyond = (sample: number): number => Math.max(0, sample - resolution * 1e6) * nanoseconds
  const read = () =>
    delay.count === 0
      ? { mean: 0, p99: 0, max: 0 }
      : { mean: beyond(delay.mean), p99: beyond(delay.percentile(99)), max: beyond(delay.max) }
  let last: ReturnType<typeof read> | undefined
  const next = Effect.sync(() => {
    last = read()
    delay.reset()
  })
  yield* Effect.sleep(period).pipe(Effect.andThen(next), Effect.forever, Effect.forkScoped)

  const lag = (figure: keyof ReturnType<typeof read>, description: string) =>
    registerGauge(
      `nodejs_eventloop_lag_${figure}_seconds`,
      `${description} of the event loop over ${period}`,
      () => (last ?? read())[figure]
    )
  lag("mean", "Mean delay")
  lag("p99", "99th percentile of the delay")
  lag("max", "Longest delay")
})
