import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Shared from "../../../src/adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { makeLayer, setUp, testAdmissionLimits } from "../../contracts/AdmissionLimits.ts"
import { type RedisServer, redisServer } from "../../support/programs/redis.ts"

describe("with Redis", () => {
  const scope = Scope.makeUnsafe()
  let redis: RedisServer
  beforeAll(async () => {
    redis = await Effect.runPromise(Scope.provide(redisServer, scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const shared = Layer.unwrap(Effect.sync(() => Shared.layer({ url: redis.url })))

  testAdmissionLimits("redis", shared)

  it.effect("a request that the exhausted process limit rejects sends no command to Redis", () =>
    Effect.gen(function* () {
      const { keys, request } = yield* setUp(2)
      yield* redis.ask("CONFIG RESETSTAT")
      assert.deepStrictEqual(yield* Effect.forEach([keys[0]!, keys[0]!, keys[1]!, keys[1]!], request), [
        "admitted",
        "process",
        "process",
        "process"
      ])
      assert.match(yield* redis.ask("INFO commandstats"), /cmdstat_evalsha:calls=1,/)
    }).pipe(Effect.provide(makeLayer({ perKey: 10, perProcess: 1 }, shared)))
  )
})
