import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources, postgres } from "../../support/database.ts"
import { type RedisServer, redisServer } from "../../support/programs/redis.ts"
import { send } from "../../support/clients/requests.ts"
import type { Service } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"

describe("a Redis server that fails", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const authorization = `Bearer ${keys.active.plaintext}`
  let redis: RedisServer
  let service: Service

  beforeAll(async () => {
    redis = await resources.acquire(redisServer)
    const env = {
      ...(await resources.acquire(postgres.acquire)),
      REDIS_URL: redis.url,
      RATE_LIMIT_PER_KEY: "100000",
      RATE_LIMIT_PER_PROCESS: "100000"
    }
    service = await startObservedService(env)
    await (await resources.acquire(connectTo(env))).importArchive(archive)
  })
  afterAll(async () => {
    expect(await service?.stop()).toBe(0)
    await resources.release()
  })

  const listKeys = () => Effect.runPromise(redis.ask("KEYS prompt-retrieval:rate:{*"))
  /** Waits until Redis counts requests again. After a failure, the service does not use Redis for one second. */
  const waitUntilShared = () =>
    expect
      .poll(
        async () => {
          await Effect.runPromise(redis.ask("FLUSHALL"))
          await send(service, "/api/v1/prompts", authorization)
          return listKeys()
        },
        { timeout: 8_000, interval: 100 }
      )
      .not.toBe("*0")

  /**
   * Expects 40 responses of 200. Each may take the 50 ms that the service waits for Redis, and the delay of a busy
   * machine.
   */
  const expectResponses = async () => {
    for (let i = 0; i < 40; i++) {
      const { status, duration } = await send(service, "/api/v1/prompts", authorization)
      expect(status).toBe(200)
      expect(duration).toBeLessThan(500)
    }
    expect((await send(service, "/readyz")).status).toBe(200)
  }

  it("requests get their usual responses while Redis is stopped, and Redis counts again after its restart", async () => {
    await waitUntilShared()
    await Effect.runPromise(redis.stop)
    await expectResponses()
    await Effect.runPromise(redis.start)
    await waitUntilShared()
  })
})
