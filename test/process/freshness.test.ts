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
})
