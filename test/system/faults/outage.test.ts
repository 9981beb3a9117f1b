import { setTimeout } from "node:timers/promises"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type Cluster, freshCluster } from "../../support/database/cluster.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import { type Reply, read } from "../../support/clients/read.ts"
import {
  isFromBefore,
  makeOutageTenant,
  startKnownLoad,
  startUnknownLoad,
  warm
} from "../../support/services/outage.ts"
import { type Proxy, proxyToUrl } from "../../support/postgres.ts"
import { type Service, unlimited } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"

/** The OUTAGE_MAX_AGE of the services, in milliseconds. */
const maxAgeMs = 10_000
/** How long known reads are sent during an outage, in milliseconds. This is well below OUTAGE_MAX_AGE. */
const loadMs = 4_500

const countStatuses = (replies: ReadonlyArray<Reply>): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

describe("two services whose database is unreachable", () => {
  const resources = makeResources()
  const tenant = makeOutageTenant()
  const { active, second, revoked } = tenant.keys
  const [first] = tenant.archive.prompts
  const firstPath = `/api/v1/prompts/${first!.id}`
  let cluster: Cluster
  let proxy: Proxy
  let services: ReadonlyArray<Service>

  const connect = async () => resources.acquire(connectTo({ DATABASE_URL: cluster.url }))

  beforeAll(async () => {
    cluster = await resources.acquire(freshCluster)
    await cluster.start()
    proxy = await resources.acquire(proxyToUrl(cluster.url))
    const env = { ...unlimited, DATABASE_URL: proxy.url, OUTAGE_MAX_AGE: `${maxAgeMs}ms` }
    services = await Promise.all([startObservedService(env), startObservedService(env)])
    await (await connect()).importArchive(tenant.archive)
  })
  afterAll(async () => {
    await resources.acquire(proxy.thaw)
    for (const service of services) await service.stop()
    await resources.release()
  })

  const readAll = (target: string, key: string) =>
    Promise.all(services.map(({ url }) => read(url + target, key)))

  const waitForAll = async (target: string, key: string, holds: (reply: Reply) => boolean) => {
    await expect.poll(async () => (await readAll(target, key)).every(holds), { interval: 20 }).toBe(true)
  }

  let endFault: (() => Promise<void>) | undefined
  afterEach(async () => {
    await endFault?.()
    endFault = undefined
    // This read is not cached, so it succeeds only if the database responds.
    await waitForAll(
      `${firstPath}?after=${performance.now()}`,
      active.plaintext,
      ({ status }) => status === 200
    )
    // The change feed may need 3 s more to reconnect. Until the feed is up, no response becomes known.
    await setTimeout(4_000)
  })

  interface Fault {
    readonly begin: () => Promise<void>
    readonly end: () => Promise<void>
  }
  const faults: Readonly<Record<string, Fault>> = {
    "is killed with SIGKILL": { begin: () => cluster.kill(), end: () => cluster.start() },
    "is silently cut off": {
      begin: () => resources.acquire(proxy.freeze),
      end: () => resources.acquire(proxy.thaw)
    }
  }
  let round = 0

  it.each(Object.entries(faults))(
    "while PostgreSQL %s, known reads succeed until OUTAGE_MAX_AGE has passed, and then get 503",
    async (_, { begin, end }) => {
      const title = `Round ${++round}`
      const before = await connect()
      // Uses a key and then revokes it before the outage.
      await before.sql("update api_keys set revoked_at = null where id = $1", [second.stored.id])
      await waitForAll(firstPath, second.plaintext, ({ status }) => status === 200)
      await before.sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
      await waitForAll(firstPath, second.plaintext, ({ status }) => status === 401)
      await warm(services, tenant)
      const rejections: Array<Reply> = []
      const loadUntil = async (end: number) => {
        const known = startKnownLoad(services, tenant)
        const unknown = startUnknownLoad(services, tenant)
        while (performance.now() < end) {
          for (const key of [second, revoked]) rejections.push(...(await readAll(firstPath, key.plaintext)))
          await setTimeout(100)
        }
        return { known: await known.stop(), unknown }
      }
      const normal = await loadUntil(performance.now() + 3_000)
      expect(countStatuses(await normal.unknown.stop())).toEqual({ 200: expect.any(Number) })

      endFault = end
      /** The latest time at which the services can have lost contact with the database. */
      const lostAt = setTimeout(200).then(async () => {
        await begin()
        return performance.now()
      })
      const { known: replies, unknown } = await loadUntil(performance.now() + loadMs)
      for (const { url } of services) expect((await fetch(`${url}/readyz`)).status).toBe(200)

      expect(countStatuses(replies)).toEqual({ 200: replies.length })
      const outdated = replies.filter(isFromBefore)
      expect(outdated.length).toBeGreaterThan(200)
      for (const { headers, startedAt } of outdated) {
        const age = Number(headers.age)
        expect(age).toBeGreaterThanOrEqual((startedAt - (await lostAt)) / 1_000)
        expect(age).toBeLessThanOrEqual(maxAgeMs / 1_000)
      }
      expect(countStatuses(rejections)).toEqual({ 401: rejections.length })
      const unknownStatuses = countStatuses(await unknown.stop())
      expect(Object.keys(unknownStatuses).filter((status) => !["200", "503"].includes(status))).toEqual([])
      expect(unknownStatuses[503]).toBeGreaterThan(0)

      await setTimeout(Math.max(0, (await lostAt) + maxAgeMs + 100 - performance.now()))
      for (const reply of await readAll(firstPath, active.plaintext)) {
        expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "1"])
      }
      for (const { url } of services) expect((await fetch(`${url}/readyz`)).status).toBe(503)

      await end()
      endFault = undefined
      const after = await connect()
      await after.sql("update prompts set title = $1 where id = $2", [title, first!.id])
      await waitForAll(`${firstPath}?round=${round}`, active.plaintext, ({ status }) => status === 200)
      for (const reply of await readAll(firstPath, active.plaintext)) {
        expect([reply.status, JSON.parse(reply.body).data.title]).toEqual([200, title])
        expect(isFromBefore(reply)).toBe(false)
      }
    }
  )

  it("an edit and a revocation during an outage take effect from the first response after the outage", async () => {
    const direct = await connect()
    await direct.sql("update api_keys set revoked_at = null where id = $1", [second.stored.id])
    await waitForAll(firstPath, second.plaintext, ({ status }) => status === 200)
    await warm(services, tenant)
    // The service may have sent the first 200 before it received the notification of the change, so the test reads
    // again.
    await waitForAll(firstPath, second.plaintext, ({ status }) => status === 200)
    endFault = () => resources.acquire(proxy.thaw)
    await resources.acquire(proxy.freeze)
    await waitForAll(firstPath, active.plaintext, isFromBefore)
    await waitForAll(firstPath, second.plaintext, isFromBefore)
    await direct.sql("update prompts set title = 'Edited' where id = $1", [first!.id])
    await direct.sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
    await resources.acquire(proxy.thaw)
    await Promise.all(
      services.map(async ({ url }) => {
        const until = performance.now() + 5_000
        let last: Reply | undefined
        while (performance.now() < until) {
          const [edited, revoked] = await Promise.all([
            read(url + firstPath, active.plaintext),
            read(url + firstPath, second.plaintext)
          ])
          const seesChanges = !isFromBefore(edited) && !isFromBefore(revoked)
          // After the first response with the changes, no older response may follow, even if contact is lost again.
          if (!seesChanges && last === undefined) continue
          last = edited
          expect([edited.status, JSON.parse(edited.body).data.title]).toEqual([200, "Edited"])
          expect(revoked.status).toBe(401)
        }
        expect(last).toBeDefined()
      })
    )
  })
})
