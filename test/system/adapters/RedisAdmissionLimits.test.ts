import { afterAll, beforeAll, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Shared from "../../../src/adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { testAdmissionLimits } from "../../contracts/AdmissionLimits.ts"
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
})
