import { setTimeout } from "node:timers/promises"
import type * as Effect from "effect/Effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Cluster, freshCluster } from "../../support/database/cluster.ts"
import { connectTo } from "../../support/database.ts"
import { type Reply, read } from "../../support/clients/read.ts"
import {
  isFromBefore,
  makeOutageTenant,
  startKnownLoad,
  startUnknownLoad,
  warm
} from "../../support/services/outage.ts"
import { type Proxy, proxyToUrl } from "../../support/postgres.ts"
import { runService, type Service, unlimited } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { makeAcquire } from "../../support/testDatabase.ts"

/** The OUTAGE_MAX_AGE of the service, in milliseconds. */
const maxAgeMs = 10_000
/** How long known reads are sent during an outage, in milliseconds. This is well below OUTAGE_MAX_AGE. */
const loadMs = 4_500

const listStatuses = (replies: ReadonlyArray<Reply>) => new Set(replies.map(({ status }) => status))

describe("a service whose database is unreachable", () => {
  const tenant = makeOutageTenant()
  const { active, second, revoked } = tenant.keys
  const [first] = tenant.archive.prompts
  const acquire = makeAcquire()
  let cluster: Cluster
  let proxy: Proxy
  let service: Service
  let sql: Effect.Success<ReturnType<typeof connectTo>>["sql"]

  const connect = async () => {
    const database = await acquire(connectTo({ DATABASE_URL: cluster.url }))
    sql = database.sql
    return database
  }

  beforeEach(async () => {
    cluster = await acquire(freshCluster)
    await cluster.start()
    proxy = await acquire(proxyToUrl(cluster.url))
    const env = { ...unlimited, DATABASE_URL: proxy.url, OUTAGE_MAX_AGE: `${maxAgeMs}ms` }
    service = await acquire(runService(() => startObservedService(env)))
    await (await connect()).importArchive(tenant.archive)
  })
  afterEach(() => acquire(proxy.thaw))

  const readFirst = (key: string, query = "") =>
    read(`${service.url}/api/v1/prompts/${first!.id}${query}`, key)
  const waitForStatus = (status: number, key: string, query = "") =>
    expect.poll(async () => (await readFirst(key, query)).status, { interval: 20 }).toBe(status)
  const readReadiness = async () => (await fetch(`${service.url}/readyz`)).status

  /** Sends known and unknown reads, and reads with revoked keys, for some time. */
  const load = async (durationMs: number) => {
    const known = startKnownLoad([service], tenant)
    const unknown = startUnknownLoad([service], tenant)
    const rejected: Array<Reply> = []
    for (const end = performance.now() + durationMs; performance.now() < end; await setTimeout(100))
      for (const key of [second, revoked]) rejected.push(await readFirst(key.plaintext))
    const readiness = await readReadiness()
    return { known: await known.stop(), unknown: await unknown.stop(), rejected, readiness }
  }

  const faults = [
    {
      name: "is killed with SIGKILL",
      begin: () => cluster.kill(),
      end: async () => {
        await cluster.start()
        await connect()
      }
    },
    {
      name: "is silently cut off",
      begin: () => acquire(proxy.freeze),
      end: () => acquire(proxy.thaw)
    }
  ]

  it.each(faults)(
    "while PostgreSQL $name, known reads succeed until OUTAGE_MAX_AGE has passed, and then get 503",
    async ({ begin, end }) => {
      // The key is used, and revoked before the outage.
      await waitForStatus(200, second.plaintext)
      await sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
      await waitForStatus(401, second.plaintext)
      await warm([service], tenant)
      expect(listStatuses((await load(3_000)).unknown)).toEqual(new Set([200]))

      /** The latest time at which the service can have lost contact with the database. */
      const lostAt = setTimeout(200).then(async () => {
        await begin()
        return performance.now()
      })
      const { known, unknown, rejected, readiness } = await load(loadMs)
      expect(readiness).toBe(200)
      expect(listStatuses(known)).toEqual(new Set([200]))
      const outdated = known.filter(isFromBefore)
      expect(outdated.length).toBeGreaterThan(100)
      for (const { headers, startedAt } of outdated) {
        const age = Number(headers.age)
        expect(age).toBeGreaterThanOrEqual((startedAt - (await lostAt)) / 1_000)
        expect(age).toBeLessThanOrEqual(maxAgeMs / 1_000)
      }
      expect(listStatuses(rejected)).toEqual(new Set([401]))
      expect(listStatuses(unknown)).toContain(503)
      expect(new Set([200, 503])).toEqual(listStatuses(unknown).add(200))

      await setTimeout(Math.max(0, (await lostAt) + maxAgeMs + 100 - performance.now()))
      expect(await readFirst(active.plaintext)).toMatchObject({
        status: 503,
        headers: { "retry-after": "1" }
      })
      expect(await readReadiness()).toBe(503)

      await end()
      await sql("update prompts set title = 'Edited' where id = $1", [first!.id])
      await waitForStatus(200, active.plaintext, "?after=outage")
      const reply = await readFirst(active.plaintext)
      expect([reply.status, JSON.parse(reply.body).data.title]).toEqual([200, "Edited"])
      expect(isFromBefore(reply)).toBe(false)
    },
    60_000
  )

  it("while PostgreSQL is silently cut off, SIGTERM ends the process, and in-flight requests get 503", async () => {
    await waitForStatus(200, active.plaintext)
    await acquire(proxy.freeze)
    const inFlight = readFirst(active.plaintext, "?uncached")
    await setTimeout(100)
    const stopped = service.stop()
    expect((await inFlight).status).toBe(503)
    await expect.poll(service.output).toContain("Stopped prompt-retrieval")
    // In tests, a process ends only once its connections are closed.
    await acquire(proxy.thaw)
    expect(await stopped).toBe(0)
  })

  it("an edit and a revocation during an outage take effect from the first response after the outage", async () => {
    await waitForStatus(200, second.plaintext)
    await warm([service], tenant)
    await readFirst(second.plaintext)
    await acquire(proxy.freeze)
    for (const { plaintext } of [active, second])
      await expect.poll(async () => isFromBefore(await readFirst(plaintext)), { interval: 20 }).toBe(true)
    await sql("update prompts set title = 'Edited' where id = $1", [first!.id])
    await sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
    await acquire(proxy.thaw)
    let seesChanges = false
    for (const end = performance.now() + 5_000; performance.now() < end; ) {
      const [edited, rejected] = await Promise.all([readFirst(active.plaintext), readFirst(second.plaintext)])
      // After the first response with the changes, no older response may follow, even if contact is lost again.
      seesChanges ||= !isFromBefore(edited) && !isFromBefore(rejected)
      if (seesChanges) expect([rejected.status, JSON.parse(edited.body).data.title]).toEqual([401, "Edited"])
    }
    expect(seesChanges).toBe(true)
  })
})
