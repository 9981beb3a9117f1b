/**
 * Measures the heap that the in-process rate limiter uses for a million distinct keys within an hour of the test
 * clock, with one request each, beside a map without eviction. Exits with 1 when the heap grew by a quarter after
 * the first two minutes.
 *
 *     node bench/rate-limiter-memory.ts
 */
import { randomUUID } from "node:crypto"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { layer } from "../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { RateLimiter } from "../src/application/ports/RateLimiter.ts"
import type { ApiKeyId } from "../src/domain/ApiKey.ts"

setFlagsFromString("--expose-gc")
const collectGarbage: () => void = runInNewContext("gc")

const keys = 1_000_000
const minutes = 60
const perSecond = Math.ceil(keys / (minutes * 60))

const measureHeap = (): number => {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
const toMiB = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)

/** Calls `count` once per key and prints the heap growth after minute 2 and every tenth minute; returns last/first. */
const run = Effect.fnUntraced(function* (
  name: string,
  count: (key: ApiKeyId, now: number) => Effect.Effect<unknown>
) {
  const before = measureHeap()
  const points: Array<{ readonly minute: number; readonly bytes: number }> = []
  let counted = 0
  for (let minute = 1; minute <= minutes; minute++) {
    for (let second = 0; second < 60; second++) {
      const now = yield* Clock.currentTimeMillis
      for (let n = 0; n < perSecond && counted < keys; n++, counted++)
        yield* count(randomUUID() as ApiKeyId, now)
      yield* TestClock.adjust("1 second")
    }
    if (minute === 2 || minute % 10 === 0) points.push({ minute, bytes: measureHeap() - before })
  }
  console.log(`${name}: ${counted} distinct keys in ${minutes} minutes; heap growth since the start`)
  for (const { minute, bytes } of points) {
    console.log(`  minute ${String(minute).padStart(2)}  ${toMiB(bytes).padStart(6)} MiB`)
  }
  const ratio = points.at(-1)!.bytes / points[0]!.bytes
  console.log(`  minute ${minutes} : minute 2 = ${ratio.toFixed(2)}`)
  return ratio
})

const ratio = await Effect.runPromise(
  Effect.gen(function* () {
    const limiter = yield* RateLimiter
    const ratio = yield* run("rate limiter", (key, now) => limiter.take(key, 100, now))
    const counts = new Map<string, number>()
    yield* run("baseline, a map", (key, now) =>
      Effect.sync(() => counts.set(`${key}:${Math.floor(now / 60_000)}`, 1))
    )
    // Used after the measurements, so that the garbage collector cannot remove either before.
    yield* limiter.take("process", counts.size, 0)
    return ratio
  }).pipe(Effect.provide([layer, TestClock.layer()]), Effect.scoped)
)
process.exitCode = ratio < 1.25 ? 0 : 1
