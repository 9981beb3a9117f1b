import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { vi } from "vitest"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import * as InProcess from "../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { Admission, type RateLimits } from "../../src/application/Admission.ts"
import { Lifecycle } from "../../src/application/Lifecycle.ts"
import { RateLimiter } from "../../src/application/ports/RateLimiter.ts"
import { countAdmitted } from "../contracts/RateLimiter.ts"
import { archive, key, user, workspace } from "../support/archives.ts"
import { makeTest } from "../support/makeTest.ts"

/**
 * Stores keys of one workspace. Returns the ids of the keys and the function `request`, which sends a request with the
 * key at an index. `request` returns "admitted", or the scope of the limit that rejected the request.
 */
const setUp = Effect.fnUntraced(function* (count: number) {
  const [home, owner] = [workspace(), user()]
  const keys = Array.from({ length: count }, () => key(home.id, owner))
  const api_keys = keys.map(({ stored }) => stored)
  yield* Memory.storeArchive(archive({ workspace: home, users: [owner], api_keys }))
  const { admit } = yield* Admission
  const request = (index: number) =>
    admit(keys[index]!.plaintext).pipe(
      Effect.as("admitted"),
      Effect.catchTag("RateLimited", ({ scope }) => Effect.succeed(scope))
    )
  return { ids: api_keys.map(({ id }) => id), request }
})

/** A limiter that yields before it counts a request, so that concurrent requests interleave as they do with Redis. */
const limiter = Layer.effect(
  RateLimiter,
  Effect.map(RateLimiter, (inProcess) => ({
    ...inProcess,
    take: (...request: Parameters<typeof inProcess.take>) =>
      Effect.andThen(Effect.yieldNow, inProcess.take(...request))
  }))
).pipe(Layer.provide(Layer.fresh(InProcess.layer)))

/** Returns a function that registers a test. The test clock stays at 0, so all requests of a test are in one minute. */
const makeTestOf = (limits: RateLimits) =>
  makeTest(
    it.effect,
    Admission.layer(limits).pipe(
      Layer.provide([Lifecycle.serving]),
      Layer.provideMerge(Layer.merge(Memory.layer, limiter))
    )
  )

makeTestOf({ perKey: 3, perProcess: 4 })(
  "admit checks the limit of the key before the process limit, even while the process limit is exhausted",
  function* () {
    const { request } = yield* setUp(2)
    const outcomes = yield* Effect.forEach([0, 0, 0, 0, 1, 1, 0, 1], request)
    assert.strictEqual(outcomes.join(" "), "admitted admitted admitted key admitted process key process")
  }
)

makeTestOf({ perKey: 10, perProcess: 25 })(
  "a request that one limit rejects does not count against the other limit, however many requests run concurrently",
  function* () {
    const { ids, request } = yield* setUp(10)
    /** Sends requests with these keys concurrently. Returns how many were admitted, and how many each limit rejected. */
    const send = Effect.fnUntraced(function* (indexes: ReadonlyArray<number>) {
      const outcomes = yield* Effect.all(indexes.map(request), { concurrency: "unbounded" })
      return ["admitted", "key", "process"].map((name) => outcomes.filter((each) => each === name).length)
    })
    assert.deepStrictEqual(yield* send(Array.from({ length: 25 }, () => 0)), [10, 15, 0])
    assert.deepStrictEqual(yield* send(Array.from({ length: 90 }, (_, n) => (n % 9) + 1)), [15, 0, 75])
    const limiter = yield* RateLimiter
    const remaining = yield* Effect.forEach(ids, (id) => countAdmitted(limiter, id, 20, 0, 10))
    assert.strictEqual(
      remaining.reduce((sum, each) => sum + each),
      100 - 25
    )
  }
)

makeTestOf({ perKey: 1, perProcess: 1 })(
  "while the limiter still counts a request of one key, the process limit rejects no request of another key",
  function* () {
    const { ids, request } = yield* setUp(2)
    const limiter = yield* RateLimiter
    const { take } = limiter
    vi.spyOn(limiter, "take").mockImplementation((scope, ...others) =>
      scope === ids[0] ? Effect.never : take(scope, ...others)
    )
    yield* Effect.forkChild(request(0), { startImmediately: true })
    assert.strictEqual(yield* request(1), "admitted")
  }
)
