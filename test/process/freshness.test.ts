import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources, postgres } from "../support/database.ts"
import {
  changesOf,
  quantile,
  readPrompt,
  readyHits,
  type TwoServices,
  timeToSee,
  twoServices,
  untilCaching
} from "../support/freshness.ts"
import { proxyTo } from "../support/postgres.ts"

/** How old an answer may be while nothing tells of changes (DESIGN.md section 7), in milliseconds. */
const bound = 3_000
/** What a busy machine may add to that. */
const slack = 500

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

describe.skipIf(postgres.missing !== undefined)("two services of one database", { timeout: 60_000 }, () => {
  const resources = makeResources()
  let two: TwoServices
  const setTitle = (title: string) =>
    two.sql("update prompts set title = $1 where id = $2", [title, two.tenant.archive.prompts[0]!.id])

  beforeAll(async () => {
    two = await resources.acquire(twoServices)
  })
  afterAll(() => resources.release())

  it("see every change that anybody makes in SQL, at once", async () => {
    const times: Array<number> = []
    for (let round = 0; round < 12; round++) {
      for (const change of changesOf(two.tenant, round)) times.push(await timeToSee(two, change))
    }
    expect(quantile(times, 0.9)).toBeLessThan(100)
    expect(Math.max(...times)).toBeLessThan(1_000)
    // Nothing of this would mean anything if nothing had been cached.
    expect(await two.near.metric(readyHits)).toBeGreaterThan(50)
    expect(await two.far.metric(readyHits)).toBeGreaterThan(50)
  })

  it("keep no answer that was read before a change and ready after it", async () => {
    const { far, sql, tenant } = two
    await setTitle("Before")
    // A read whose snapshot is of before the change and which takes until after it.
    await sql("alter table prompts rename to prompts_themselves")
    await sql(
      "create view prompts as select p.* from prompts_themselves p, (select pg_sleep(0.7) offset 0) slow"
    )
    const slow = readPrompt(far, tenant)
    await sleep(300)
    await sql("update prompts_themselves set title = 'After' where id = $1", [tenant.archive.prompts[0]!.id])
    expect(await slow).toEqual({ status: 200, title: "Before" })
    await sql("drop view prompts")
    await sql("alter table prompts_themselves rename to prompts")
    const before = await far.metric(readyHits)
    expect(await readPrompt(far, tenant)).toEqual({ status: 200, title: "After" })
    expect(await far.metric(readyHits)).toBe(before)
  })

  it("cache again by themselves once their connections were ended", async () => {
    const { far, near, proxy, tenant } = two
    await resources.acquire(proxy.cut)
    await untilCaching(far)
    for (const service of [near, far]) {
      const before = await service.metric(readyHits)
      for (let i = 0; i < 4; i++) expect((await readPrompt(service, tenant)).status).toBe(200)
      expect(await service.metric(readyHits)).toBeGreaterThan(before)
    }
  })

  it("a cut that nothing tells of leaves an answer old for 3 s at most", async () => {
    const { far, proxy, tenant } = two
    await setTitle("Old")
    while ((await readPrompt(far, tenant)).title !== "Old") await sleep(5)
    await readPrompt(far, tenant)
    await resources.acquire(proxy.silence)
    const cut = performance.now()
    await setTitle("New")
    let lastOld = 0
    let answer: Awaited<ReturnType<typeof readPrompt>>
    do {
      const began = performance.now() - cut
      answer = await readPrompt(far, tenant)
      if (answer.title === "Old") lastOld = began
      expect([200, 503]).toContain(answer.status)
      expect(began).toBeLessThan(20_000)
    } while (answer.title !== "New")
    // The cut was one: it served from its caches for a while.
    expect(lastOld).toBeGreaterThan(1_000)
    expect(lastOld).toBeLessThan(bound + slack)
    await untilCaching(far)
  })

  it("are never older than that, whatever changes and is cut at any time", async () => {
    const { far, near, proxy, tenant } = two
    const until = performance.now() + 12_000
    let failed = false
    const running = () => performance.now() < until && !failed
    /** When each title's write began and when it was committed; the title is its place here. */
    const writes: Array<{ readonly began: number; committed: number }> = []
    const write = async () => {
      const entry = { began: performance.now(), committed: Number.POSITIVE_INFINITY }
      writes.push(entry)
      await setTitle(String(writes.length - 1))
      entry.committed = performance.now()
    }
    await write()
    for (const service of [near, far]) {
      while ((await readPrompt(service, tenant)).title !== "0") await sleep(5)
    }

    const seen = { near: 0, far: 0, data: 0 }
    const read = async (name: "near" | "far", allowed: number) => {
      const service = name === "near" ? near : far
      const began = performance.now()
      const { status, title } = await readPrompt(service, tenant).catch(() => ({
        status: 0,
        title: undefined
      }))
      const ended = performance.now()
      seen[name]++
      if (status !== 200) return expect([name, status]).toEqual(["far", 503])
      seen.data++
      const value = Number(title)
      expect(writes[value]!.began).toBeLessThan(ended)
      // Nothing that was committed that long before the request is missing.
      const newest = writes.findLastIndex(({ committed }) => committed < began - allowed)
      expect(value, `${name}, of ${newest}`).toBeGreaterThanOrEqual(newest)
    }
    const reader = async (name: "near" | "far", allowed: number) => {
      while (running()) await read(name, allowed)
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
      ...[1, 2].flatMap(() => [reader("near", slack), reader("far", bound + slack)])
    ]
    // Whoever fails ends the others first: none may go on into the next test.
    for (const each of all) each.catch(() => (failed = true))
    await Promise.allSettled(all)
    await Promise.all(all)
    expect(writes.length).toBeGreaterThan(100)
    expect(seen.near).toBeGreaterThan(500)
    expect(seen.data - seen.near).toBeGreaterThan(100)
  })

  it("behind a pooler that keeps notices back nothing is cached, and every change is seen by the next answer", async () => {
    const { database, sql, startWatched, tenant } = two
    const pooler = await resources.acquire(proxyTo(database, { pooler: true }))
    const service = await resources.acquire(startWatched(pooler.url))
    for (let i = 0; i < 20; i++) {
      await sql("update prompts set title = $1 where id = $2", [`Pooled ${i}`, tenant.archive.prompts[0]!.id])
      expect(await readPrompt(service, tenant)).toEqual({ status: 200, title: `Pooled ${i}` })
      expect(await readPrompt(service, tenant)).toEqual({ status: 200, title: `Pooled ${i}` })
    }
    expect(await service.metric(readyHits)).toBe(0)
  })
})
