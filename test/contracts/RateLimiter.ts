import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { type Bucket, RateLimiter } from "../../src/application/ports/RateLimiter.ts"
import type { ApiKeyId } from "../../src/domain/ApiKey.ts"

const minute = 60_000
/** The first instant of some minute. */
const start = 29_000_000 * minute

export const newKey = (): ApiKeyId => randomUUID() as ApiKeyId

/** How many of `times` requests at `now` are admitted, all at once. */
export const admitted = (
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
    (answers) => answers.filter((answer) => answer).length
  )

const limit = 2

/** One step of a client: what it asks for which bucket, and how far the clock went before, back included. */
const Step = Schema.Struct({
  act: Schema.Literals(["take", "take", "take", "refund", "isFull"]),
  bucket: Schema.Literals([0, 1, 2]),
  passed: Schema.Int.check(Schema.isBetween({ minimum: -40_000, maximum: 70_000 })),
  stands: Schema.Boolean
})

/** The law: a count for each bucket and minute, kept for ever. */
const naive = () => {
  const counts = new Map<string, number>()
  const at = (bucket: Bucket, now: number) => `${bucket} ${Math.floor(now / minute)}`
  const count = (bucket: Bucket, now: number) => counts.get(at(bucket, now)) ?? 0
  const add = (bucket: Bucket, now: number, by: number) =>
    counts.set(at(bucket, now), count(bucket, now) + by)
  return {
    isFull: (bucket: Bucket, now: number) => count(bucket, now) >= limit,
    take: (bucket: Bucket, now: number) => {
      if (count(bucket, now) >= limit) return false
      add(bucket, now, 1)
      return true
    },
    refund: (bucket: Bucket, now: number) => {
      if (count(bucket, now) > 0) add(bucket, now, -1)
    }
  }
}

/** What every RateLimiter must do, as far as one process can tell (SPEC.md section 8). */
export const rateLimiterContract = (name: string, layer: Layer.Layer<RateLimiter>): void => {
  const test = (title: string, body: (limiter: RateLimiter["Service"]) => Effect.Effect<void>): void =>
    it.effect(title, () => RateLimiter.use(body).pipe(Effect.provide(Layer.fresh(layer))))

  describe(`RateLimiter contract: ${name}`, () => {
    for (const bucketOf of [newKey, () => "process" as const]) {
      const bucket = bucketOf()

      describe(bucket === "process" ? "process" : "key", () => {
        test("admits the limit in a clock minute, from its first millisecond to its last", (limiter) =>
          Effect.gen(function* () {
            const bucket = bucketOf()
            assert.deepStrictEqual(
              [
                yield* admitted(limiter, bucket, 60, start),
                yield* admitted(limiter, bucket, 60, start + 59_999),
                yield* admitted(limiter, bucket, 1, start),
                yield* admitted(limiter, bucket, 101, start + minute),
                yield* admitted(limiter, bucket, 1, start + 2 * minute - 1),
                yield* admitted(limiter, bucket, 101, start + 9 * minute)
              ],
              [60, 40, 0, 100, 0, 100]
            )
          }))

        test("admits exactly the limit of a thousand at once", (limiter) =>
          Effect.gen(function* () {
            const bucket = bucketOf()
            assert.strictEqual(yield* admitted(limiter, bucket, 1000, start), 100)
            assert.isTrue(limiter.isKnownExhausted(bucket, 100, start))
            assert.isFalse(limiter.isKnownExhausted(bucket, 101, start))
            assert.isFalse(limiter.isKnownExhausted(bucket, 100, start + minute))
          }))

        test("a refund gives back one request, and never one that was not counted", (limiter) =>
          Effect.gen(function* () {
            const bucket = bucketOf()
            yield* limiter.refund(bucket, start)
            yield* limiter.take(bucket, 100, start)
            yield* limiter.refund(bucket, start)
            yield* limiter.refund(bucket, start)
            assert.strictEqual(yield* admitted(limiter, bucket, 101, start), 100)
            yield* limiter.refund(bucket, start)
            assert.isFalse(limiter.isKnownExhausted(bucket, 100, start))
            assert.strictEqual(yield* admitted(limiter, bucket, 2, start), 1)
          }))

        test("a refund of a past minute gives the current one nothing", (limiter) =>
          Effect.gen(function* () {
            const bucket = bucketOf()
            yield* limiter.take(bucket, 100, start + 59_999)
            assert.strictEqual(yield* admitted(limiter, bucket, 100, start + minute), 100)
            yield* limiter.refund(bucket, start + 59_999)
            assert.strictEqual(yield* admitted(limiter, bucket, 1, start + minute), 0)
          }))
      })
    }

    test("buckets do not share a count", (limiter) =>
      Effect.gen(function* () {
        const buckets = [newKey(), newKey(), "process"] as const
        for (const bucket of buckets) assert.strictEqual(yield* admitted(limiter, bucket, 101, start), 100)
      }))

    test("a clock that steps back over a minute's edge admits nobody twice", (limiter) =>
      Effect.gen(function* () {
        const key = newKey()
        const instants = [59_000, 61_000, 59_000, 125_000, 119_000, 125_000, 179_000]
        const counts = yield* Effect.forEach(instants, (at) => admitted(limiter, key, 150, start + at))
        assert.deepStrictEqual(counts, [100, 100, 0, 100, 0, 0, 0])
      }))

    it.effect.prop(
      "any sequence of calls is answered as by a count for each bucket and minute",
      [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 120 })],
      ([steps]) =>
        Effect.gen(function* () {
          const limiter = yield* RateLimiter
          const model = naive()
          const buckets: ReadonlyArray<Bucket> = [newKey(), newKey(), "process"]
          let now = start
          let latest = start
          for (const { act, bucket: index, passed, stands } of steps) {
            // Back by less than a minute: what a clock that is set right does, and a count that comes late.
            now = stands ? now : Math.max(now + passed, latest - 59_000)
            latest = Math.max(latest, now)
            const bucket = buckets[index]!
            switch (act) {
              case "take":
                assert.strictEqual(yield* limiter.take(bucket, limit, now), model.take(bucket, now))
                break
              case "refund":
                yield* limiter.refund(bucket, now)
                model.refund(bucket, now)
                break
              case "isFull":
                assert.strictEqual(limiter.isKnownExhausted(bucket, limit, now), model.isFull(bucket, now))
                break
            }
          }
        }).pipe(Effect.provide(Layer.fresh(layer)))
    )
  })
}
