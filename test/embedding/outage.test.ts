import { afterAll, expect, it } from "vitest"
import { createPromptApi, type PromptApi, type PromptApiOptions } from "../../src/index.ts"
import { sample } from "../support/archives.ts"
import { lockTables } from "../support/database/locks.ts"
import { makeResources } from "../support/database.ts"
import { proxyToUrl } from "../support/postgres.ts"
import { outageStatus } from "../support/services/outage.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const tenant = sample()
const path = `/api/v1/prompts/${tenant.archive.prompts[0]!.id}`

const apis: Array<PromptApi> = []
const { env } = makeTestDatabase([tenant.archive])
const resources = makeResources()
afterAll(async () => {
  for (const api of apis) await api.close()
  await resources.release()
})

const open = async (options: PromptApiOptions) => {
  const rateLimits = { perKey: 1_000_000, perProcess: 1_000_000 }
  const api = await createPromptApi({ logger: {}, rateLimits, ...options })
  apis.push(api)
  return api
}

const read = async (api: PromptApi, target = path) => {
  const headers = { authorization: `Bearer ${tenant.keys.active.plaintext}` }
  const response = await api.handler(new Request(`http://host.example${target}`, { headers }))
  await response.text()
  return [response.status, response.headers.get("cache-status"), response.headers.get("cache-control")]
}

/** Reads until the response is cached, so that the API can serve the response in an outage. Needs `metrics: true`. */
const readUntilKnown = async (api: PromptApi) => {
  const countHits = () => {
    const line = /^prompt_retrieval_cache_lookups_total\{cache="responses",result="hit"\} (\d+)/m
    return Number(line.exec(api.metrics())?.[1] ?? 0)
  }
  const isKnown = async () => {
    const before = countHits()
    for (const _ of [1, 2]) expect((await read(api))[0]).toBe(200)
    return countHits() > before
  }
  await expect.poll(isKnown, { timeout: 15_000 }).toBe(true)
}

// `test/application/cache/Outage.test.ts` and `test/system/faults/outage.test.ts` test the other rules of outages.
it("while PostgreSQL is unreachable, api.handler serves known responses, or returns 503 if outageMaxAge is 0", async () => {
  const proxy = await resources.acquire(proxyToUrl(env.DATABASE_URL))
  const serving = await open({ databaseUrl: proxy.url, metrics: true })
  const failing = await open({ databaseUrl: proxy.url, outageMaxAge: 0 })
  await readUntilKnown(serving)
  expect((await read(failing))[0]).toBe(200)
  await resources.acquire(proxy.freeze)
  await resources.acquire(proxy.cut)
  await expect
    .poll(() => read(serving), { timeout: 15_000, interval: 20 })
    .toEqual([200, outageStatus, "no-store"])
  const caller = { workspaceId: tenant.archive.workspace.id, tier: "solo" }
  await expect(serving.prompts.get(caller, tenant.archive.prompts[0]!.id)).rejects.toMatchObject({
    code: "SERVICE_UNAVAILABLE"
  })
  const unavailable = [503, null, "no-store"]
  expect(await Promise.all([read(failing), read(serving, `${path}?unknown`)])).toEqual([
    unavailable,
    unavailable
  ])
})

it("an in-process read that waits for other reads of its workspace fails after 5 s", async () => {
  const { prompts } = await open({ databaseUrl: env.DATABASE_URL })
  const release = await lockTables(env.DATABASE_URL, "prompts")
  const caller = { workspaceId: tenant.archive.workspace.id, tier: "solo" }
  const start = performance.now()
  const reads = Array.from({ length: 30 }, (_, index) => prompts.list(caller, { page: index + 1 }))
  const codes = await Promise.all(reads.map((read) => read.catch(({ code }) => code as string)))
  expect(performance.now() - start).toBeLessThan(6_500)
  expect(codes).toEqual(Array(30).fill("SERVICE_UNAVAILABLE"))
  await release()
  expect((await prompts.list(caller)).data).not.toEqual([])
})
