import { randomUUID } from "node:crypto"
import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { type Bucket, RateLimiter } from "../../src/application/ports/RateLimiter.ts"
import type { ApiKeyId } from "../../src/domain/ApiKey.ts"

const minute = 60_000
/** The first instant of a clock minute. */
const start = 29_000_000 * minute

export const newKey = (): ApiKeyId => randomUUID() as ApiKeyId

/** Calls `take` `times` times concurrently at `now`, and returns how many calls admitted their request. */
export const countAdmitted = (
  limiter: RateLimiter["Service"],
  bucket: Bucket,
  times: number,
  now: number,
  limit = 100
): Effect.Effect<number> =>
  Effect.map(
    Effect.all(
      Array.from({ length: times }, () => limiter.take(bucket, limit, now)),
      { concurrency: "unbounded" }
    ),
    (admitted) => admitted.filter((isAdmitted) => isAdmitted).length
  )

const limit = 2

/** One step: the clock moves, perhaps backwards, and then the test calls the limiter for one of three buckets. */
const Step = Schema.Struct({
  call: Schema.Literals(["take", "refund", "isExhausted"]),
  bucket: Schema.Literals([0, 1, 2]),
  elapsed: Schema.Int.check(Schema.isBetween({ minimum: -40_000, maximum: 70_000 })),
  isClockFrozen: Schema.Boolean
})

/** Makes the model, which keeps one count per bucket and minute and never drops a count. */
const makeModel = () => {
  const counts = new Map<string, number>()
  const toKey = (bucket: Bucket, now: number) => `${bucket} ${Math.floor(now / minute)}`
  const count = (bucket: Bucket, now: number) => counts.get(toKey(bucket, now)) ?? 0
  const add = (bucket: Bucket, now: number, by: number) =>
    counts.set(toKey(bucket, now), count(bucket, now) + by)
  return {
    isExhausted: (bucket: Bucket, now: number) => count(bucket, now) >= limit,
    take: (bucket: Bucket, now: number) => {
      if (count(bucket, now) >= limit) return false
      add(bucket, now, 1)
      return true
    },
    refund: (now: number) => {
      if (count("process", now) > 0) add("process", now, -1)
    }
  }
}

/** Tests what every adapter of `RateLimiter` must do within one process (specification 8). */
export const testRateLimiter = (layer: Layer.Layer<RateLimiter>): void => {
  it.effect.prop(
    "any sequence of calls returns the same results as the model, which counts per bucket and minute",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 120 })],
    Effect.fnUntraced(
      function* ([steps]) {
        const limiter = yield* RateLimiter
        const model = makeModel()
        const buckets: ReadonlyArray<Bucket> = [newKey(), newKey(), "process"]
        let now = start
        let latest = start
        for (const { call, bucket: index, elapsed, isClockFrozen } of steps) {
          // The clock can go back by less than a minute, because clocks are corrected and requests arrive late.
          now = isClockFrozen ? now : Math.max(now + elapsed, latest - 59_000)
          latest = Math.max(latest, now)
          const bucket = buckets[index]!
          if (call === "take")
            assert.strictEqual(yield* limiter.take(bucket, limit, now), model.take(bucket, now))
          else if (call === "refund") {
            limiter.refund("process", now)
            model.refund(now)
          } else {
            const isExhausted = limiter.isExhausted(bucket, limit, now)
            assert.strictEqual(isExhausted, model.isExhausted(bucket, now))
          }
        }
      },
      Effect.provide(Layer.fresh(layer))
    )
  )
}
