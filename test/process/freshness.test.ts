import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources } from "../support/database.ts"
import {
  listChanges,
  measureStaleness,
  readPrompt,
  responseCacheHits,
  type TwoServices,
  twoServices,
  waitUntilCaching
} from "../support/services/freshness.ts"
import { proxyTo } from "../support/postgres.ts"

/** How old a response may be after the change feed was silently cut, in milliseconds. */
const maxStaleness = 3_000
/** What a busy machine may add to that. */
const slack = 500

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

describe("freshness of two services of one database", { timeout: 60_000 }, () => {
  const resources = makeResources()
  let services: TwoServices
  const setTitle = (title: string) =>
    services.sql("update prompts set title = $1 where id = $2", [
      title,
      services.tenant.archive.prompts[0]!.id
    ])

  beforeAll(async () => {
    services = await resources.acquire(twoServices)
  })
  afterAll(() => resources.release())

  it("every kind of change made in SQL is visible in both services' responses within 1 s", async () => {
    const times: Array<number> = []
    for (let round = 0; round < 6; round++) {
      for (const change of listChanges(services.tenant, round))
        times.push(await measureStaleness(services, change))
    }
    expect(Math.max(...times)).toBeLessThan(1_000)
    // The responses before the changes were cached.
    expect(await services.near.metric(responseCacheHits)).toBeGreaterThan(25)
    expect(await services.far.metric(responseCacheHits)).toBeGreaterThan(25)
  })

  it("a response that was read before a change and is complete after it is not cached", async () => {
    const { far, sql, tenant } = services
    await setTitle("Before")
    // The read's snapshot precedes the change, and the read ends after it.
    await sql("alter table prompts rename to renamed_prompts")
    await sql(
      "create view prompts as select p.* from renamed_prompts p, (select pg_sleep(0.7) offset 0) slow"
    )
    const slow = readPrompt(far, tenant)
    await sleep(300)
    await sql("update renamed_prompts set title = 'After' where id = $1", [tenant.archive.prompts[0]!.id])
    expect(await slow).toEqual({ status: 200, title: "Before" })
    await sql("drop view prompts")
    await sql("alter table renamed_prompts rename to prompts")
    const before = await far.metric(responseCacheHits)
    expect(await readPrompt(far, tenant)).toEqual({ status: 200, title: "After" })
    expect(await far.metric(responseCacheHits)).toBe(before)
  })

  it("services cache again after their connections to PostgreSQL are closed", async () => {
    const { far, near, proxy, tenant } = services
    await resources.acquire(proxy.cut)
    await waitUntilCaching(far)
    for (const service of [near, far]) {
      const before = await service.metric(responseCacheHits)
      for (let i = 0; i < 4; i++) expect((await readPrompt(service, tenant)).status).toBe(200)
      expect(await service.metric(responseCacheHits)).toBeGreaterThan(before)
    }
  })

  it("with random changes and interruptions for 8 s, no response is more than 3 s old", async () => {
    const { far, near, proxy, tenant } = services
    const until = performance.now() + 8_000
    let failed = false
    const running = () => performance.now() < until && !failed
    /** The start and the commit of each write; a title is the index of its write. */
    const writes: Array<{ readonly startedAt: number; committedAt: number }> = []
    const write = async () => {
      const entry = { startedAt: performance.now(), committedAt: Number.POSITIVE_INFINITY }
      writes.push(entry)
      await setTitle(String(writes.length - 1))
      entry.committedAt = performance.now()
    }
    await write()
    for (const service of [near, far]) {
      while ((await readPrompt(service, tenant)).title !== "0") await sleep(5)
    }

    const counts = { near: 0, far: 0, data: 0 }
    const read = async (name: "near" | "far", maxAge: number) => {
      const service = name === "near" ? near : far
      const startedAt = performance.now()
      const { status, title } = await readPrompt(service, tenant).catch(() => ({
        status: 0,
        title: undefined
      }))
      const endedAt = performance.now()
      counts[name]++
      if (status !== 200) return expect([name, status]).toEqual(["far", 503])
      counts.data++
      const value = Number(title)
      expect(writes[value]!.startedAt).toBeLessThan(endedAt)
      // The response includes every write that was committed at least `maxAge` before the request.
      const newest = writes.findLastIndex(({ committedAt }) => committedAt < startedAt - maxAge)
      expect(value, `${name}, newest ${newest}`).toBeGreaterThanOrEqual(newest)
    }
    const reader = async (name: "near" | "far", maxAge: number) => {
      while (running()) await read(name, maxAge)
    }
    const writer = async () => {
      while (running()) {
        await sleep(Math.random() < 0.1 ? 400 : 5 + 20 * Math.random())
        await write()
      }
    }
    const cutter = async () => {
      while (running()) {
        await sleep(500 + 2_500 * Math.random())
        if (Math.random() < 0.5) await resources.acquire(proxy.cut)
        else {
          await resources.acquire(proxy.freeze)
          await sleep(3_500 * Math.random())
          await resources.acquire(proxy.thaw)
        }
      }
    }
    const all = [
      writer(),
      cutter(),
      ...[1, 2].flatMap(() => [reader("near", slack), reader("far", maxStaleness + slack)])
    ]
    // A failure stops the other loops, so that none of them continues during the next test.
    for (const each of all) each.catch(() => (failed = true))
    await Promise.allSettled(all)
    await Promise.all(all)
    expect(writes.length).toBeGreaterThan(60)
    expect(counts.near).toBeGreaterThan(300)
    expect(counts.data - counts.near).toBeGreaterThan(50)
  })

  it("behind a pooler that drops notifications nothing is cached and every change is visible in the next response", async () => {
    const { database, sql, startMetered, tenant } = services
    const pooler = await resources.acquire(proxyTo(database, { pooler: true }))
    const service = await resources.acquire(startMetered(pooler.url))
    for (let i = 0; i < 20; i++) {
      await sql("update prompts set title = $1 where id = $2", [`Pooled ${i}`, tenant.archive.prompts[0]!.id])
      expect(await readPrompt(service, tenant)).toEqual({ status: 200, title: `Pooled ${i}` })
      expect(await readPrompt(service, tenant)).toEqual({ status: 200, title: `Pooled ${i}` })
    }
    expect(await service.metric(responseCacheHits)).toBe(0)
  })

  it("after the change feed is silently cut, responses are at most 3 s old", async () => {
    const { far, proxy, tenant } = services
    await setTitle("Old")
    while ((await readPrompt(far, tenant)).title !== "Old") await sleep(5)
    const hits = await far.metric(responseCacheHits)
    while ((await far.metric(responseCacheHits)) === hits) await readPrompt(far, tenant)
    await resources.acquire(proxy.silence)
    const cutAt = performance.now()
    await setTitle("New")
    let lastStale = 0
    let response: Awaited<ReturnType<typeof readPrompt>>
    do {
      const startedAfter = performance.now() - cutAt
      response = await readPrompt(far, tenant)
      if (response.title === "Old") lastStale = startedAfter
      expect([200, 503]).toContain(response.status)
      expect(startedAfter).toBeLessThan(20_000)
    } while (response.title !== "New")
    // The cut took effect: the service served cached responses for a while.
    expect(lastStale).toBeGreaterThan(1_000)
    expect(lastStale).toBeLessThan(maxStaleness + slack)
  })
})
