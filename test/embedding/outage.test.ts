import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { createPromptApi, type PromptApi, type PromptApiOptions } from "../../src/index.ts"
import { sample } from "../support/archives.ts"
import { lockTables } from "../support/database/locks.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { proxyToUrl } from "../support/network/tcpProxy.ts"
import { outageStatus } from "../support/services/outage.ts"

const tenant = sample()
const { id } = tenant.archive.prompts[0]!
const path = `/api/v1/prompts/${id}`
const caller = { workspaceId: tenant.archive.workspace.id, tier: "solo" }
const unavailable = expect.objectContaining({ code: "SERVICE_UNAVAILABLE" })

const { env, acquire } = makeTestDatabase([tenant.archive])
const open = (options: PromptApiOptions) => {
  const rateLimits = { perKey: 1_000_000, perProcess: 1_000_000 }
  const create = Effect.promise(() => createPromptApi({ logger: {}, rateLimits, ...options }))
  return acquire(Effect.acquireRelease(create, ({ close }) => Effect.promise(close)))
}

const read = async (api: PromptApi, target = path) => {
  const headers = { authorization: `Bearer ${tenant.keys.active.plaintext}` }
  const response = await api.handler(new Request(`http://host.example${target}`, { headers }))
  await response.text()
  return [response.status, response.headers.get("cache-status"), response.headers.get("cache-control")]
}

// `test/application/cache/Outage.test.ts` and `test/system/faults/outage.test.ts` test the other rules of outages.
it("while PostgreSQL is unreachable, api.handler serves known responses, or returns 503 if outageMaxAge is 0", async () => {
  const proxy = await acquire(proxyToUrl(env.DATABASE_URL))
  const serving = await open({ databaseUrl: proxy.url, metrics: true })
  const failing = await open({ databaseUrl: proxy.url, outageMaxAge: 0 })
  const readMetrics = async () => {
    await read(serving)
    return serving.metrics()
  }
  // A response becomes known when the service caches the response.
  await expect.poll(readMetrics).toMatch(/cache_lookups_total\{cache="responses",result="hit"\} [1-9]/)
  expect((await read(failing))[0]).toBe(200)
  await acquire(proxy.freeze)
  await acquire(proxy.cut)
  await expect.poll(() => read(serving), { interval: 20 }).toEqual([200, outageStatus, "no-store"])
  await expect(serving.prompts.get(caller, id)).rejects.toEqual(unavailable)
  for (const response of [await read(failing), await read(serving, `${path}?unknown`)])
    expect(response).toEqual([503, null, "no-store"])
})

it("an in-process read that waits for other reads of its workspace fails after its deadline", async () => {
  const { prompts } = await open({ databaseUrl: env.DATABASE_URL })
  const release = await lockTables(env.DATABASE_URL, "prompts")
  const reads = Array.from({ length: 30 }, (_, index) => prompts.list(caller, { page: index + 1 }))
  await Promise.all(reads.map((read) => expect(read).rejects.toEqual(unavailable)))
  await release()
  expect((await prompts.list(caller)).data).not.toEqual([])
})
