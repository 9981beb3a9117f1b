import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import { storeArchive } from "../../src/adapters/outbound/memory/MemoryState.ts"
import { Admission, type RateLimits } from "../../src/application/access/Admission.ts"
import { Lifecycle } from "../../src/application/Lifecycle.ts"
import { RateLimiter } from "../../src/application/ports/RateLimiter.ts"
import { countAdmitted } from "./RateLimiter.ts"
import { archive, type Key, key, user, workspace } from "../support/archives.ts"

const home = workspace()
const owner = user()

/**
 * Stores keys of one workspace. Returns the keys and the function `request`, which sends a request with a key. It
 * returns "admitted", the scope of the limit that rejected the request, or the tag of another error.
 */
export const setUp = Effect.fnUntraced(function* (count: number) {
  const keys = Array.from({ length: count }, () => key(home.id, owner))
  yield* storeArchive(
    archive({ workspace: home, users: [owner], api_keys: keys.map(({ stored }) => stored) })
  )
  const { admit } = yield* Admission
  const request = (from: Key): Effect.Effect<string> =>
    Effect.map(Effect.result(admit(from.plaintext)), (result) => {
      if (Result.isSuccess(result)) return "admitted"
      return result.failure._tag === "RateLimited" ? result.failure.scope : result.failure._tag
    })
  return { keys, request }
})

/** Returns the layer of `Admission` with these limits and this limiter, and of the in-memory stores. */
export const makeLayer = (limits: RateLimits, limiter: Layer.Layer<RateLimiter>) =>
  Admission.layer(limits).pipe(
    Layer.provide([Lifecycle.serving]),
    Layer.provideMerge(Layer.merge(Memory.layer, Layer.fresh(limiter)))
  )

/** Tests the rate limits of `Admission`. The test clock stays at 0, so all requests are in one minute. */
export const testAdmissionLimits = (name: string, limiter: Layer.Layer<RateLimiter>): void => {
  describe(`the rate limits of Admission: ${name}`, () => {
    it.effect(
      "RateLimited contains the scope and the size of the limit that rejected the request, and the seconds until the limit resets",
      () =>
        Effect.gen(function* () {
          const { keys, request } = yield* setUp(1)
          const { admit } = yield* Admission
          yield* request(keys[0]!)
          assert.deepStrictEqual(yield* Effect.flip(admit(keys[0]!.plaintext)), {
            _tag: "RateLimited",
            scope: "key",
            limit: 1,
            retry_after: 60
          })
        }).pipe(Effect.provide(makeLayer({ perKey: 1, perProcess: 9 }, limiter)))
    )

    it.effect("the limit of the key is checked first, even while the process limit is exhausted", () =>
      Effect.gen(function* () {
        const { keys, request } = yield* setUp(2)
        const [one, other] = [keys[0]!, keys[1]!]
        assert.deepStrictEqual(
          yield* Effect.forEach([one, one, one, one, other, other, one, other], request),
          ["admitted", "admitted", "admitted", "key", "admitted", "process", "key", "process"]
        )
      }).pipe(Effect.provide(makeLayer({ perKey: 3, perProcess: 4 }, limiter)))
    )

    it.effect(
      "a request that the process limit rejects does not count against the limit of its key, however many requests run concurrently",
      () =>
        Effect.gen(function* () {
          const { keys, request } = yield* setUp(10)
          const requests = Array.from({ length: 100 }, (_, index) => keys[index % 10]!)
          const outcomes = yield* Effect.forEach(requests, request, { concurrency: "unbounded" })
          const count = (outcome: string) => outcomes.filter((each) => each === outcome).length
          assert.deepStrictEqual([count("admitted"), count("process")], [25, 75])
          const limiter = yield* RateLimiter
          const remaining = yield* Effect.forEach(keys, ({ stored }) =>
            countAdmitted(limiter, stored.id, 20, 0, 10)
          )
          assert.strictEqual(
            remaining.reduce((sum, each) => sum + each),
            100 - 25
          )
        }).pipe(Effect.provide(makeLayer({ perKey: 10, perProcess: 25 }, limiter)))
    )
  })
}
