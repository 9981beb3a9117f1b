import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources, postgres } from "../../support/database.ts"
import { startObserved } from "../../support/observed.ts"
import { ask } from "../../support/outcomes.ts"
import { noRedis, type RedisServer, redisServer, type SlowProxy, slowProxy } from "../../support/redis.ts"
import type { Service } from "../../support/service.ts"

const missing = postgres.missing ?? noRedis

describe.skipIf(missing !== undefined)("the real process with a Redis that fails", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const authorization = `Bearer ${keys.active.plaintext}`
  let redis: RedisServer
  let proxy: SlowProxy
  let service: Service

  beforeAll(async () => {
    redis = await resources.acquire(redisServer)
    proxy = await resources.acquire(slowProxy(redis.port))
    const env = {
      ...(await resources.acquire(postgres.acquire)),
      REDIS_URL: proxy.url,
      RATE_LIMIT_PER_KEY: "100000",
      RATE_LIMIT_PER_PROCESS: "100000"
    }
    service = await startObserved(env)
    await (await resources.acquire(connectTo(env))).importArchive(archive)
  })
  afterAll(async () => {
    expect(await service?.stop()).toBe(0)
    await resources.release()
  })

  const names = () => Effect.runPromise(redis.ask("KEYS prompt-retrieval:rate:{*"))
  /** Redis counts again: nobody asks it for a second after it failed. */
  const untilShared = () =>
    expect
      .poll(
        async () => {
          await Effect.runPromise(redis.ask("FLUSHALL"))
          await ask(service, "/api/v1/prompts", authorization)
          return names()
        },
        { timeout: 8_000, interval: 100 }
      )
      .not.toBe("*0")

  /** All answered, none of them held up by more than the one wait of 50 ms that a busy machine stretches. */
  const expectAnswered = async () => {
    for (let i = 0; i < 40; i++) {
      const { status, duration } = await ask(service, "/api/v1/prompts", authorization)
      expect(status).toBe(200)
      expect(duration).toBeLessThan(500)
    }
    expect((await ask(service, "/readyz")).status).toBe(200)
  }

  it("gone, and back", async () => {
    await untilShared()
    await Effect.runPromise(redis.stop)
    await expectAnswered()
    await Effect.runPromise(redis.start)
    await untilShared()
  })

  it("frozen, and thawed", async () => {
    await untilShared()
    await Effect.runPromise(redis.freeze)
    await expectAnswered()
    await Effect.runPromise(redis.thaw)
    await untilShared()
  })

  it("slow, and quick again", async () => {
    await untilShared()
    await Effect.runPromise(proxy.delay(2_000))
    await expectAnswered()
    await Effect.runPromise(proxy.delay(0))
    await untilShared()
  })
})
