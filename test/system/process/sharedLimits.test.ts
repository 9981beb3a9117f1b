import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { key, sample } from "../../support/archives.ts"
import { connectTo, makeResources, postgres } from "../../support/database.ts"
import { redisServer } from "../../support/programs/redis.ts"
import type { Service } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"

/** Returns the number of the current window of the rate limits, which are counted per clock minute. */
const currentWindow = () => Math.floor(Date.now() / 60_000)

describe("three processes on one PostgreSQL", () => {
  const resources = makeResources()
  const { archive } = sample()
  const keys = Array.from({ length: 3 }, () => key(archive.workspace.id, archive.users[0]!))
  let database: Record<string, string>
  let redisUrl: string

  beforeAll(async () => {
    database = await resources.acquire(postgres.acquire)
    redisUrl = (await resources.acquire(redisServer)).url
  })
  afterAll(() => resources.release())

  const withServices = async <A>(
    env: Record<string, string>,
    run: (services: ReadonlyArray<Service>) => Promise<A>
  ): Promise<A> => {
    const services: Array<Service> = []
    try {
      for (let i = 0; i < 3; i++)
        services.push(await startObservedService({ ...database, ...env, RATE_LIMIT_PER_PROCESS: "1000" }))
      const { importArchive } = await resources.acquire(connectTo(database))
      await importArchive({
        ...archive,
        api_keys: [...archive.api_keys, ...keys.map(({ stored }) => stored)]
      })
      return await run(services)
    } finally {
      await Promise.all(services.map((service) => service.stop()))
    }
  }

  /** Sends 240 requests with one key: 80 to each service, 4 at a time. Counts the responses by status. */
  const sendBurst = async (services: ReadonlyArray<Service>, token: string) => {
    const statuses: Record<number, number> = {}
    const runClient = async ({ url }: Service) => {
      for (let i = 0; i < 20; i++) {
        const response = await fetch(`${url}/api/v1/prompts?per_page=1`, {
          headers: { authorization: `Bearer ${token}` }
        })
        await response.arrayBuffer()
        statuses[response.status] = (statuses[response.status] ?? 0) + 1
      }
    }
    await Promise.all(services.flatMap((service) => Array.from({ length: 4 }, () => runClient(service))))
    return statuses
  }

  it("processes that share a Redis admit 100 requests per key and minute in total", async () => {
    const statuses = await withServices({ REDIS_URL: redisUrl }, async (services) => {
      const window = currentWindow()
      const first = await sendBurst(services, keys[0]!.plaintext)
      // A burst that crosses into another minute uses two windows. In that case, a second burst with another key
      // follows, which cannot cross into another minute.
      return currentWindow() === window ? first : sendBurst(services, keys[1]!.plaintext)
    })
    expect(statuses).toEqual({ 200: 100, 429: 140 })
  }, 90_000)

  it("processes without a Redis admit 100 requests per key and minute each", async () => {
    const statuses = await withServices({}, (services) => sendBurst(services, keys[2]!.plaintext))
    expect(statuses).toEqual({ 200: 240 })
  }, 90_000)
})
