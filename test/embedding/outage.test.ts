import { setTimeout } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { createPromptApi, type PromptApi, type PromptApiOptions } from "../../src/index.ts"
import { sample } from "../support/archives.ts"
import { connectTo, makeResources } from "../support/database.ts"
import { outageStatus } from "../support/services/outage.ts"
import { freshDatabase, proxyTo, toDatabaseUrl } from "../support/postgres.ts"
import { run } from "../support/service.ts"

const tenant = sample()
const path = `/api/v1/prompts/${tenant.archive.prompts[0]!.id}`
const { active, revoked, second } = tenant.keys

const apis: Array<PromptApi> = []
let resources: ReturnType<typeof makeResources>
beforeEach(() => {
  resources = makeResources()
})
afterEach(async () => {
  vi.restoreAllMocks()
  for (const api of apis.splice(0)) await api.close()
  await resources.release()
})

const open = async (options: PromptApiOptions) => {
  const rateLimits = { perKey: 1_000_000, perProcess: 1_000_000 }
  const api = await createPromptApi({ logger: {}, rateLimits, ...options })
  apis.push(api)
  return api
}

const read = async (api: PromptApi, target = path, key: string = active.plaintext) => {
  const response = await api.handler(
    new Request(`http://host.example${target}`, { headers: { authorization: `Bearer ${key}` } })
  )
  await response.text()
  const { headers } = response
  return [response.status, headers.get("cache-status"), headers.get("cache-control")]
}
const fromBefore = [200, outageStatus, "no-store"]
const unavailable = [503, null, "no-store"]

/** Reads until the response is cached, so that it is known in an outage. The API must collect metrics. */
const readUntilKnown = async (api: PromptApi, key: string = active.plaintext) => {
  const countHits = () => {
    const line = /^prompt_retrieval_cache_lookups_total\{cache="responses",result="hit"\} (\d+)/m
    return Number(line.exec(api.metrics())?.[1] ?? 0)
  }
  const isKnown = async () => {
    const before = countHits()
    for (const _ of [1, 2]) expect((await read(api, path, key))[0]).toBe(200)
    return countHits() > before
  }
  await expect.poll(isKnown, { timeout: 15_000 }).toBe(true)
}

describe("createPromptApi while PostgreSQL is away", () => {
  it("serves known responses until outageMaxAge has passed, and none if that is 0", {
    timeout: 60_000
  }, async () => {
    const database = await resources.acquire(freshDatabase)
    const env = { DATABASE_URL: toDatabaseUrl(database) }
    expect((await run(["migrate"], env)).code).toBe(0)
    await (await resources.acquire(connectTo(env))).importArchive(tenant.archive)
    const proxy = await resources.acquire(proxyTo(database))
    const serving = await open({ databaseUrl: proxy.url, outageMaxAge: 8_000, metrics: true })
    const failing = await open({ databaseUrl: proxy.url, outageMaxAge: 0 })
    await readUntilKnown(serving)
    for (const api of [serving, failing]) {
      expect((await read(api))[0]).toBe(200)
      expect((await read(api, path, revoked.plaintext))[0]).toBe(401)
    }
    await resources.acquire(proxy.freeze)
    await resources.acquire(proxy.cut)
    const lostAt = performance.now()
    await expect.poll(() => read(serving), { timeout: 6_000, interval: 20 }).toEqual(fromBefore)
    expect((await read(serving, path, revoked.plaintext))[0]).toBe(401)
    expect((await serving.handler(new Request("http://host.example/readyz"))).status).toBe(200)
    const caller = { workspaceId: tenant.archive.workspace.id, tier: "solo" }
    await expect(serving.prompts.get(caller, tenant.archive.prompts[0]!.id)).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE"
    })
    expect(
      await Promise.all([
        read(failing),
        read(failing, path, revoked.plaintext),
        read(serving, `${path}?unknown`)
      ])
    ).toEqual([unavailable, unavailable, unavailable])
    await setTimeout(Math.max(0, lostAt + 8_100 - performance.now()))
    expect(await read(serving)).toEqual(unavailable)
    await resources.acquire(proxy.thaw)
    await expect
      .poll(() => read(serving), { timeout: 10_000 })
      .toEqual([200, null, expect.stringContaining("public")])
  })

  it("serves nothing to a key that a read has shown to be revoked, also once PostgreSQL is silent", {
    timeout: 90_000
  }, async () => {
    const database = await resources.acquire(freshDatabase)
    const env = { DATABASE_URL: toDatabaseUrl(database) }
    expect((await run(["migrate"], env)).code).toBe(0)
    const direct = await resources.acquire(connectTo(env))
    await direct.importArchive(tenant.archive)
    const proxy = await resources.acquire(proxyTo(database))
    const feedProxy = await resources.acquire(proxyTo(database))
    const api = await open({
      databaseUrl: proxy.url,
      databaseFeedUrl: feedProxy.url,
      outageMaxAge: 60_000,
      metrics: true
    })
    for (const key of [active, second]) await readUntilKnown(api, key.plaintext)
    await resources.acquire(feedProxy.freeze)
    await direct.sql("update api_keys set revoked_at = now() where id = $1", [active.stored.id])
    let n = 0
    const readUnknown = async () => (await read(api, `${path}?unknown=${n++}`))[0]
    await expect.poll(readUnknown, { timeout: 20_000 }).toBe(401)
    await resources.acquire(proxy.freeze)
    await resources.acquire(proxy.cut)
    await expect
      .poll(() => read(api, path, second.plaintext), { timeout: 15_000, interval: 20 })
      .toEqual(fromBefore)
    for (let i = 0; i < 3; i++) expect(await read(api)).toEqual(unavailable)
  })
})
