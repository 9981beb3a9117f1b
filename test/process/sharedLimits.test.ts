import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { startObserved } from "../support/observed.ts"
import { noRedis, redisServer } from "../support/redis.ts"
import type { Service } from "../support/service.ts"

const missing = postgres.missing ?? noRedis
const minute = 60_000
/** What of a clock minute the test needs for itself, in milliseconds. */
const needed = 20_000

/** Waits for the next minute's edge where little of this minute is left. */
const enoughOfAMinute = async () => {
  const left = minute - (Date.now() % minute)
  if (left < needed) await new Promise((resolve) => setTimeout(resolve, left + 100))
}

describe.skipIf(missing !== undefined)("three processes on one PostgreSQL", () => {
  const resources = makeResources()
  const tenant = sample()
  let database: Record<string, string>
  let redis: string

  beforeAll(async () => {
    database = await resources.acquire(postgres.acquire)
    redis = (await resources.acquire(redisServer)).url
  })
  afterAll(() => resources.release())

  /** How 240 requests of one key fare, 80 on each process, a few of them at once. */
  const burst = async (env: Record<string, string>, key: string) => {
    const services: Array<Service> = []
    try {
      for (let i = 0; i < 3; i++)
        services.push(await startObserved({ ...database, ...env, RATE_LIMIT_PER_PROCESS: "1000" }))
      const { importArchive } = await resources.acquire(connectTo(database))
      await importArchive(tenant.archive)
      await enoughOfAMinute()
      const ask = async (service: Service, token: string) => {
        const response = await fetch(`${service.url}/api/v1/prompts?per_page=1`, {
          headers: { authorization: `Bearer ${token}` }
        })
        await response.arrayBuffer()
        return response.status
      }
      const statuses: Array<number> = []
      const lane = async (service: Service) => {
        for (let i = 0; i < 20; i++) statuses.push(await ask(service, key))
      }
      await Promise.all(services.flatMap((service) => Array.from({ length: 4 }, () => lane(service))))
      return {
        admitted: statuses.filter((s) => s === 200).length,
        denied: statuses.filter((s) => s === 429).length
      }
    } finally {
      await Promise.all(services.map((service) => service.stop()))
    }
  }

  it("with one Redis a key's 100 are 100 in all", async () => {
    expect(await burst({ REDIS_URL: redis }, tenant.keys.active.plaintext)).toEqual({
      admitted: 100,
      denied: 140
    })
  }, 90_000)

  it("without it each process counts for itself", async () => {
    expect(await burst({}, tenant.keys.second.plaintext)).toEqual({ admitted: 240, denied: 0 })
  }, 90_000)
})
