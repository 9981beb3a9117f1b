import { performance } from "node:perf_hooks"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Effect from "effect/Effect"

/** A process that is busy for less than this fraction of an interval counts as idle. */
const idleUtilization = 0.05
/** The smallest growth of resident memory, in bytes, after which garbage is collected. */
const worthwhileBytes = 32 * 1024 * 1024

/**
 * Lets the heap grow by half between two garbage collections. By default, V8 lets a small heap grow to four times its
 * size. With this default, the garbage of a burst of large requests would take several hundred MiB.
 */
export const limitHeapGrowth = (): void => setFlagsFromString("--heap-growing-percent=50")

type Collect = (options: { readonly type: "major"; readonly flavor: "last-resort" }) => void

/**
 * Collects garbage whenever the process is idle and its resident memory has grown by `worthwhileBytes`, so that memory
 * returns to the system. Never ends. V8 itself collects garbage only while it allocates memory. Without this effect, the
 * process would keep the memory of a burst until the next burst: 430 MiB in `bench/neighbors.ts`.
 */
export const collectWhenIdle: Effect.Effect<never> = Effect.suspend(() => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as Collect
  let residentBytes = process.memoryUsage.rss()
  let last = performance.eventLoopUtilization()
  const observe = Effect.sync(() => {
    const { utilization } = performance.eventLoopUtilization(last)
    last = performance.eventLoopUtilization()
    if (utilization > idleUtilization || process.memoryUsage.rss() - residentBytes < worthwhileBytes) return
    collect({ type: "major", flavor: "last-resort" })
    residentBytes = process.memoryUsage.rss()
  })
  return Effect.forever(Effect.delay(observe, "10 seconds"))
})
