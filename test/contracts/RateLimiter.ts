import { randomUUID } from "node:crypto"
import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { type CountScope, RateLimiter } from "../../src/application/ports/RateLimiter.ts"
import type { ApiKeyId } from "../../src/domain/ApiKey.ts"

const minute = 60_000
/** The first instant of a clock minute. */
const start = 29_000_000 * minute

export const newKey = (): ApiKeyId => randomUUID() as ApiKeyId

/** Calls `take` `times` times concurrently at `now`, and returns how many calls admitted their request. */
export const countAdmitted = (
  limiter: RateLimiter["Service"],
  scope: CountScope,
  times: number,
  now: number,
  limit = 100
): Effect.Effect<number> =>
  Effect.map(
    Effect.all(
      Array.from({ length: times }, () => limiter.take(scope, limit, now)),
      { concurrency: "unbounded" }
    ),
    (admitted) => admitted.filter((isAdmitted) => isAdmitted).length
  )

const limit = 2

/** One step: the clock moves, perhaps backwards, and then the test calls the limiter for one of three scopes. */
const Step = Schema.Struct({
  call: Schema.Literals(["take", "refund", "isExhausted"]),
  scope: Schema.Literals([0, 1, 2]),
  elapsed: Schema.Int.check(Schema.isBetween({ minimum: -40_000, maximum: 70_000 })),
  isClockFrozen: Schema.Boolean
})

/** Makes the model, which keeps one count per scope and minute and never drops a count. */
const makeModel = () => {
  const counts = new Map<string, number>()
  const toKey = (scope: CountScope, now: number) => `${scope} ${Math.floor(now / minute)}`
  const count = (scope: CountScope, now: number) => counts.get(toKey(scope, now)) ?? 0
  const add = (scope: CountScope, now: number, by: number) =>
    counts.set(toKey(scope, now), count(scope, now) + by)
  return {
    isExhausted: (scope: CountScope, now: number) => count(scope, now) >= limit,
    take: (scope: CountScope, now: number) => {
      if (count(scope, now) >= limit) return false
      add(scope, now, 1)
      return true
    },
    refund: (scope: CountScope, now: number) => {
      if (count(scope, now) > 0) add(scope, now, -1)
    }
  }
}

/** Tests the rules of `RateLimiter` for one process (specification 8). */
export const testRateLimiter = (layer: Layer.Layer<RateLimiter>): void => {
  it.effect.prop(
    "any sequence of calls of a RateLimiter returns the results of a model that counts per scope and minute",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 120 })],
    Effect.fnUntraced(
      function* ([steps]) {
        const limiter = yield* RateLimiter
        const model = makeModel()
        const scopes: ReadonlyArray<CountScope> = [newKey(), newKey(), "process"]
        let now = start
        let latest = start
        for (const { call, scope: index, elapsed, isClockFrozen } of steps) {
          // The clock can go back by less than a minute, because clocks are corrected and requests arrive late.
          now = isClockFrozen ? now : Math.max(now + elapsed, latest - 59_000)
          latest = Math.max(latest, now)
          const scope = scopes[index]!
          if (call === "take")
            assert.strictEqual(yield* limiter.take(scope, limit, now), model.take(scope, now))
          else if (call === "refund") {
            yield* limiter.refund(scope, now)
            model.refund(scope, now)
          } else {
            const isExhausted = limiter.isExhausted(scope, limit, now)
            assert.strictEqual(isExhausted, model.isExhausted(scope, now))
          }
        }
      },
      Effect.provide(Layer.fresh(layer))
    )
  )
}
