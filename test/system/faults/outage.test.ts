import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Reply, read } from "../../support/clients/read.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { type Proxy, proxyToUrl } from "../../support/network/tcpProxy.ts"
import { isFromBefore, makeOutageTenant, startOutageLoad, warm } from "../../support/services/outage.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { runService, type Service, unlimited } from "../../support/services/startService.ts"

/** The OUTAGE_MAX_AGE of the service, in milliseconds. */
const maxAgeMs = 10_000

const listStatuses = (replies: ReadonlyArray<Reply>) => new Set(replies.map(({ status }) => status))

describe("a service whose database is silently cut off", () => {
  const tenant = makeOutageTenant()
  const { active, second, revoked } = tenant.keys
  const [first] = tenant.archive.prompts
  const { env, sql, acquire } = makeTestDatabase([tenant.archive])
  let proxy: Proxy
  let service: Service

  beforeAll(async () => {
    proxy = await acquire(proxyToUrl(env.DATABASE_URL))
    const settings = { ...unlimited, DATABASE_URL: proxy.url, OUTAGE_MAX_AGE: `${maxAgeMs}ms` }
    service = await acquire(runService(() => startObservedService(settings)))
  })
  afterAll(() => acquire(proxy.thaw))

  const readFirst = (key: string, query = "") =>
    read(`${service.url}/api/v1/prompts/${first!.id}${query}`, key)
  const waitForStatus = (status: number, key: string, query = "") =>
    expect.poll(async () => (await readFirst(key, query)).status, { interval: 20 }).toBe(status)
  const readReadiness = async () => (await fetch(`${service.url}/readyz`)).status

  it("while the database is silently cut off, cached reads succeed for OUTAGE_MAX_AGE and then get 503, and a rejected key stays rejected", async () => {
    // One of the rejected keys was used before it was revoked.
    await waitForStatus(200, second.plaintext)
    await sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
    for (const { plaintext } of [second, revoked]) await waitForStatus(401, plaintext)
    await warm([service], tenant)
    const { known, unknown } = startOutageLoad([service], tenant)
    await setTimeout(1_000)
    await acquire(proxy.freeze)
    /** The latest time at which the service can have lost contact with the database. */
    const lostAt = performance.now()
    const rejected: Array<Reply> = []
    for (; performance.now() < lostAt + maxAgeMs / 2; await setTimeout(100))
      for (const key of [second, revoked]) rejected.push(await readFirst(key.plaintext))
    expect(await readReadiness()).toBe(200)
    const replies = await known.stop()
    expect(listStatuses(replies)).toEqual(new Set([200]))
    const outdated = replies.filter(isFromBefore)
    expect(outdated.length).toBeGreaterThan(0)
    for (const { headers, startedAt } of outdated) {
      const age = Number(headers.age)
      expect(age).toBeGreaterThanOrEqual((startedAt - lostAt) / 1_000)
      expect(age).toBeLessThanOrEqual(maxAgeMs / 1_000)
    }
    expect(listStatuses(rejected)).toEqual(new Set([401]))
    expect(listStatuses(await unknown.stop())).toEqual(new Set([200, 503]))

    await setTimeout(Math.max(0, lostAt + maxAgeMs + 100 - performance.now()))
    expect(await readFirst(active.plaintext)).toMatchObject({ status: 503, headers: { "retry-after": "1" } })
    expect(await readReadiness()).toBe(503)

    await sql("update prompts set title = 'Edited' where id = $1", [first!.id])
    await acquire(proxy.thaw)
    await waitForStatus(200, active.plaintext, "?after=outage")
    const reply = await readFirst(active.plaintext)
    expect([reply.status, JSON.parse(reply.body).data.title]).toEqual([200, "Edited"])
    expect(isFromBefore(reply)).toBe(false)
  })

  it("while the database is silently cut off, SIGTERM ends the process, and in-flight requests get 503", async () => {
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
})
