import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { archive, key, prompt, user, workspace } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { freePort } from "../support/ports.ts"
import { type Service, startService } from "../support/service.ts"
import { readMetric, responseHits } from "../support/services/metrics.ts"

/** The longest time between the expiry of a key and the first rejected request, in milliseconds. */
const maxDelay = 100
/** How often each reader sends a request, in milliseconds. */
const interval = 10

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** A response, with the times of its request and of its last byte in milliseconds since the epoch. */
interface Observation {
  readonly sentAt: number
  readonly receivedAt: number
  readonly status: number
  readonly message: string | undefined
}

/** Sends a request every `interval` until the time `until`. `makeUrl` gets the index of the request. */
const observe = async (makeUrl: (n: number) => string, authorization: string, until: number) => {
  const requests: Array<Promise<Observation>> = []
  const send = async (): Promise<Observation> => {
    const sentAt = Date.now()
    const response = await fetch(makeUrl(requests.length), { headers: { authorization } })
    const { error } = (await response.json()) as { readonly error?: { readonly message: string } }
    return { sentAt, receivedAt: Date.now(), status: response.status, message: error?.message }
  }
  while (Date.now() < until) {
    requests.push(send())
    await sleep(interval)
  }
  return Promise.all(requests)
}

describe("the expiry of a key in two processes", { timeout: 60_000 }, () => {
  const resources = makeResources()
  const services: Array<Service> = []
  const metricsPorts: Array<number> = []
  const [home, owner, one] = [workspace(), user(), prompt()]
  let database: Awaited<ReturnType<typeof connect>>
  let env: Readonly<Record<string, string>>
  const connect = () => resources.acquire(connectTo(env))

  beforeAll(async () => {
    env = await resources.acquire(postgres.acquire)
    for (let index = 0; index < 2; index++) {
      const metricsPort = await freePort()
      metricsPorts.push(metricsPort)
      services.push(
        await startService({
          ...env,
          METRICS_PORT: String(metricsPort),
          RATE_LIMIT_PER_KEY: "1000000",
          RATE_LIMIT_PER_PROCESS: "1000000"
        })
      )
    }
    database = await connect()
  })
  afterAll(async () => {
    for (const service of services) await service.stop()
    await resources.release()
  })

  it("both processes reject an expired key like a revoked key within 100 ms, even if its responses are cached", async () => {
    const expiring = key(home.id, owner)
    const lasting = key(home.id, owner)
    await database.importArchive(
      archive({
        workspace: home,
        users: [owner],
        api_keys: [expiring.stored, lasting.stored],
        prompts: [one]
      })
    )
    const end = Date.now() + 3_000
    await database.sql("update api_keys set expires_at = $1 where id = $2", [
      new Date(end).toISOString(),
      expiring.stored.id
    ])
    const before = await Promise.all(metricsPorts.map((port) => readMetric(port, responseHits)))
    const observeAll = (query: (n: number) => string, { plaintext }: typeof expiring) =>
      Promise.all(
        services.map(({ url }) =>
          observe((n) => `${url}/api/v1/prompts/${one.id}${query(n)}`, `Bearer ${plaintext}`, end + 1_000)
        )
      )
    const cached = () => ""
    // The service ignores the unknown parameter, but it has no cached response for the new target.
    const uncached = (n: number) => `?n=${n}`
    const [expiredCached, expiredUncached, others] = await Promise.all([
      observeAll(cached, expiring),
      observeAll(uncached, expiring),
      observeAll(cached, lasting)
    ])
    for (const observations of [...expiredCached, ...expiredUncached]) {
      const beforeEnd = observations.filter(({ receivedAt }) => receivedAt < end)
      expect(beforeEnd.length).toBeGreaterThan(20)
      expect(new Set(beforeEnd.map(({ status }) => status))).toEqual(new Set([200]))
      const rejected = observations.filter(({ status }) => status !== 200)
      expect(new Set(rejected.map(({ status, message }) => `${status} ${message}`))).toEqual(
        new Set(["401 API key has been revoked"])
      )
      expect(Math.min(...rejected.map(({ sentAt }) => sentAt)) - end).toBeLessThan(maxDelay)
      expect(observations.filter(({ sentAt, status }) => sentAt >= end && status === 200)).toEqual([])
    }
    for (const observations of others) {
      expect(new Set(observations.map(({ status }) => status))).toEqual(new Set([200]))
    }
    const after = await Promise.all(metricsPorts.map((port) => readMetric(port, responseHits)))
    for (const [index, hits] of after.entries()) expect(hits - before[index]!).toBeGreaterThan(50)
  })
})
