/**
 * A million distinct keys within an hour of the test clock, one request each: what the in-process rate limiter holds
 * of them, beside a map that forgets nothing. Fails when the heap at the end is not the heap after the first minutes.
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

const heap = (): number => {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
const mebibytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)

/** The heap above where it began, after minute 2 and then every tenth, while `count` sees every key once. */
const run = Effect.fnUntraced(function* (
  name: string,
  count: (key: ApiKeyId, now: number) => Effect.Effect<unknown>
) {
  const before = heap()
  const points: Array<{ readonly minute: number; readonly bytes: number }> = []
  let seen = 0
  for (let minute = 1; minute <= minutes; minute++) {
    for (let second = 0; second < 60; second++) {
      const now = yield* Clock.currentTimeMillis
      for (let n = 0; n < perSecond && seen < keys; n++, seen++) yield* count(randomUUID() as ApiKeyId, now)
      yield* TestClock.adjust("1 second")
    }
    if (minute === 2 || minute % 10 === 0) points.push({ minute, bytes: heap() - before })
  }
  console.log(`${name}: ${seen} distinct keys in ${minutes} minutes; heap above the start`)
  for (const { minute, bytes } of points) {
    console.log(`  minute ${String(minute).padStart(2)}  ${mebibytes(bytes).padStart(6)} MiB`)
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
    // Used afterwards, so that neither is garbage while it is measured.
    yield* limiter.take("process", counts.size, 0)
    return ratio
  }).pipe(Effect.provide([layer, TestClock.layer()]), Effect.scoped)
)
process.exitCode = ratio < 1.25 ? 0 : 1
