import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import * as InProcess from "../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import * as Shared from "../../src/adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { Admission, type RateLimits } from "../../src/application/Admission.ts"
import { Lifecycle } from "../../src/application/Lifecycle.ts"
import { RateLimiter } from "../../src/application/ports/RateLimiter.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { countAdmitted as admitted } from "../contracts/RateLimiter.ts"
import { archive, type Key, key, sample, user, workspace, toPartStream } from "../support/archives.ts"
import { ignoreObservations } from "../support/observations.ts"
import { noRedis, type RedisServer, redisServer } from "../support/redis.ts"

const home = workspace()
const owner = user()

/** Keys of one workspace, and `ask`, which gives the outcome of a request: "in", or the scope of the limit that denied it. */
const setUp = Effect.fnUntraced(function* (count: number) {
  const keys = Array.from({ length: count }, () => key(home.id, owner))
  const { importWorkspace } = yield* WorkspaceStore
  yield* importWorkspace(
    toPartStream(archive({ workspace: home, users: [owner], api_keys: keys.map(({ stored }) => stored) }))
  )
  const { admit } = yield* Admission
  const ask = (from: Key): Effect.Effect<string> =>
    Effect.map(Effect.result(admit(from.plaintext)), (result) => {
      if (Result.isSuccess(result)) return "in"
      return result.failure._tag === "RateLimited" ? result.failure.scope : result.failure._tag
    })
  return { keys, ask }
})

const layerOf = (limits: RateLimits, limiter: Layer.Layer<RateLimiter>) =>
  Admission.layer(limits).pipe(
    Layer.provide([Lifecycle.serving, ignoreObservations]),
    Layer.provideMerge(Layer.merge(Memory.layer, Layer.fresh(limiter)))
  )

/** The clock of these tests stands still at 0, so that all requests fall into one minute. */
const admissionCounts = (name: string, limiter: Layer.Layer<RateLimiter>): void => {
  describe(`the rate limits of Admission: ${name}`, () => {
    it.effect("RateLimited tells which limit denied the request, its size and when it resets", () =>
      Effect.gen(function* () {
        const { keys, ask } = yield* setUp(1)
        const { admit } = yield* Admission
        yield* ask(keys[0]!)
        assert.deepStrictEqual(yield* Effect.flip(admit(keys[0]!.plaintext)), {
          _tag: "RateLimited",
          scope: "key",
          limit: 1,
          retry_after: 60
        })
      }).pipe(Effect.provide(layerOf({ perKey: 1, perProcess: 9 }, limiter)))
    )

    it.effect("the key's limit comes first, even while the process limit is exhausted", () =>
      Effect.gen(function* () {
        const { keys, ask } = yield* setUp(2)
        const [one, other] = [keys[0]!, keys[1]!]
        assert.deepStrictEqual(yield* Effect.forEach([one, one, one, one, other, other, one, other], ask), [
          "in",
          "in",
          "in",
          "key",
          "in",
          "process",
          "key",
          "process"
        ])
      }).pipe(Effect.provide(layerOf({ perKey: 3, perProcess: 4 }, limiter)))
    )

    it.effect(
      "a request that the process limit denies costs its key nothing, however many arrive at once",
      () =>
        Effect.gen(function* () {
          const { keys, ask } = yield* setUp(10)
          const requests = Array.from({ length: 100 }, (_, index) => keys[index % 10]!)
          const outcomes = yield* Effect.forEach(requests, ask, { concurrency: "unbounded" })
          const count = (outcome: string) => outcomes.filter((each) => each === outcome).length
          assert.deepStrictEqual([count("in"), count("process")], [25, 75])
          const limiter = yield* RateLimiter
          const left = yield* Effect.forEach(keys, ({ stored }) => admitted(limiter, stored.id, 20, 0, 10))
          assert.strictEqual(
            left.reduce((sum, each) => sum + each),
            100 - 25
          )
        }).pipe(Effect.provide(layerOf({ perKey: 10, perProcess: 25 }, limiter)))
    )

    it.effect("failed authentication and refused tenants use up no quota", () =>
      Effect.gen(function* () {
        const { keys, ask } = yield* setUp(1)
        const { importWorkspace } = yield* WorkspaceStore
        const { admit } = yield* Admission
        const refused = [sample(), sample({ tier: "free" }), sample({ billing_status: "disputed" })]
        for (const { archive } of refused) yield* importWorkspace(toPartStream(archive))
        const { active: _, second: __, ...bad } = refused[0]!.keys
        const theirs = [...Object.values(bad), refused[1]!.keys.active, refused[2]!.keys.active]
        const outcomes = yield* Effect.forEach([...theirs, key(home.id, owner)], ask)
        assert.notInclude(outcomes, "in")
        assert.notInclude(outcomes, "process")
        for (const token of [undefined, "", "x"]) yield* Effect.flip(admit(token))
        assert.deepStrictEqual(yield* Effect.forEach([keys[0]!, keys[0]!], ask), ["in", "process"])
        const limiter = yield* RateLimiter
        assert.deepStrictEqual(
          yield* Effect.forEach(theirs, ({ stored }) => admitted(limiter, stored.id, 1, 0, 1)),
          theirs.map(() => 1)
        )
      }).pipe(Effect.provide(layerOf({ perKey: 10, perProcess: 1 }, limiter)))
    )
  })
}

admissionCounts("memory", InProcess.layer)

describe.skipIf(noRedis !== undefined)(
  `with Redis${noRedis === undefined ? "" : ` (skipped: ${noRedis})`}`,
  () => {
    const scope = Scope.makeUnsafe()
    let redis: RedisServer
    beforeAll(async () => {
      redis = await Effect.runPromise(Scope.provide(redisServer, scope))
    })
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const shared = Layer.unwrap(Effect.sync(() => Shared.layer({ url: redis.url })))

    admissionCounts("redis", shared)

    it.effect("Redis is not asked while the process limit is exhausted", () =>
      Effect.gen(function* () {
        const { keys, ask } = yield* setUp(2)
        yield* redis.ask("CONFIG RESETSTAT")
        assert.deepStrictEqual(yield* Effect.forEach([keys[0]!, keys[0]!, keys[1]!, keys[1]!], ask), [
          "in",
          "process",
          "process",
          "process"
        ])
        assert.match(yield* redis.ask("INFO commandstats"), /cmdstat_evalsha:calls=1,/)
      }).pipe(Effect.provide(layerOf({ perKey: 10, perProcess: 1 }, shared)))
    )
  }
)
