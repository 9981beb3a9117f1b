import { setTimeout } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  createPromptApi,
  type HostKey,
  type HostPrompt,
  type PromptApi,
  type PromptApiOptions,
  type StoreChanges,
  StoreUnavailableError
} from "../../src/index.ts"
import { sample } from "../support/archives.ts"
import { connectTo, makeResources } from "../support/database.ts"
import { makeHostStores } from "../support/hostStores.ts"
import { outageStatus } from "../support/outage.ts"
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
    const serving = await open({ databaseUrl: proxy.url, outageMaxAge: 12_000, metrics: true })
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
    expect(
      await Promise.all([
        read(failing),
        read(failing, path, revoked.plaintext),
        read(serving, `${path}?unknown`)
      ])
    ).toEqual([unavailable, unavailable, unavailable])
    await setTimeout(Math.max(0, lostAt + 12_100 - performance.now()))
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

describe("createPromptApi while the stores of the host are away", () => {
  /** What the stores of the host show instead of what they hold. */
  interface Shown {
    key?: (key: HostKey) => HostKey | undefined
    prompt?: (prompt: HostPrompt) => HostPrompt | undefined
  }

  const setUp = async (outageMaxAge: number) => {
    const stores = await makeHostStores()
    await stores.importArchive(tenant.archive)
    let isAway = false
    const shown: Shown = {}
    const watching = new Set<StoreChanges>()
    const watch = (changes: StoreChanges) => {
      watching.add(changes)
      changes.setLive(true)
      return () => void watching.delete(changes)
    }
    const orAway = <Arguments extends ReadonlyArray<unknown>, A>(
      call: (...args: Arguments) => Promise<A>
    ): ((...args: Arguments) => Promise<A>) => {
      return async (...args) => {
        if (isAway) throw new StoreUnavailableError("away")
        return call(...args)
      }
    }
    const { promptRepo, keyStore } = stores
    const api = await open({
      promptRepo: {
        ...promptRepo,
        get: orAway(async (workspace, id) => {
          const prompt = await promptRepo.get(workspace, id)
          return prompt && shown.prompt ? shown.prompt(prompt) : prompt
        }),
        watch
      },
      keyStore: {
        ...keyStore,
        find: orAway(async (hash) => {
          const key = await keyStore.find(hash)
          return key && hash === active.stored.key_hash && shown.key ? shown.key(key) : key
        }),
        watch
      },
      outageMaxAge
    })
    return {
      api,
      shown,
      setAway: (away: boolean) => {
        isAway = away
      },
      setLive: (isLive: boolean) => {
        for (const changes of watching) changes.setLive(isLive)
      }
    }
  }

  it("serves known responses once the stores report no changes, until outageMaxAge has passed", async () => {
    const { api, setAway, setLive } = await setUp(3_000)
    expect((await read(api))[0]).toBe(200)
    setAway(true)
    expect((await read(api))[2]).toContain("public")
    setLive(false)
    expect(await read(api)).toEqual(fromBefore)
    expect(await read(api, `${path}?unknown`)).toEqual(unavailable)
    await setTimeout(3_100)
    expect(await read(api)).toEqual(unavailable)
    setAway(false)
    setLive(true)
    expect((await read(api))[2]).toContain("public")
  })

  it("reads from stores that only report no changes", async () => {
    const { api, setLive } = await setUp(1_000)
    await read(api)
    setLive(false)
    expect((await read(api))[2]).toContain("public")
  })

  it("the methods of prompts reject with SERVICE_UNAVAILABLE, although the handler serves a known response", async () => {
    const { api, setAway, setLive } = await setUp(60_000)
    const [prompt] = tenant.archive.prompts
    const get = () => api.prompts.get({ workspaceId: tenant.archive.workspace.id, tier: "solo" }, prompt!.id)
    expect((await read(api))[0]).toBe(200)
    expect((await get()).data.title).toBe(prompt!.title)
    setAway(true)
    setLive(false)
    expect(await read(api)).toEqual(fromBefore)
    await expect(get()).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" })
  })

  const workspace = (change: Partial<NonNullable<HostKey["workspace"]>>) => (key: HostKey) => ({
    ...key,
    workspace: { ...key.workspace!, ...change }
  })
  it.each<[string, number, number, NonNullable<Shown["key"]>]>([
    ["revoked", 401, 200, (key) => ({ ...key, revoked: true })],
    ["deleted", 401, 200, () => undefined],
    ["expired", 401, 200, (key) => ({ ...key, expires_at: new Date(0).toISOString() })],
    ["of an owner who must reset the password", 401, 200, (key) => ({ ...key, owner_must_reset: true })],
    ["without a workspace", 401, 200, (key) => ({ ...key, workspace: null })],
    ["of a workspace that is past due", 402, 503, workspace({ billing_status: "past_due" })],
    ["of a workspace of the tier free", 403, 503, workspace({ tier: "free" })]
  ])(
    "a key that a read of something unknown shows to be %s reads no known response",
    async (_, status, statusOfOther, change) => {
      const { api, shown, setAway, setLive } = await setUp(60_000)
      for (const key of [active, second]) expect((await read(api, path, key.plaintext))[0]).toBe(200)
      setLive(false)
      shown.key = change
      expect((await read(api, `${path}?unknown`))[0]).toBe(status)
      setAway(true)
      expect(await read(api)).toEqual(unavailable)
      // Another key of the workspace is refused only if the workspace is.
      expect((await read(api, path, second.plaintext))[0]).toBe(statusOfOther)
    }
  )

  it("a prompt that a read shows to be deleted before contact is lost is not served again", async () => {
    const { api, shown, setAway, setLive } = await setUp(600_000)
    expect((await read(api))[0]).toBe(200)
    // The response is too old for everything but an outage.
    const { now } = performance
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + 31_000)
    // `lru-cache` reads the clock at most once per millisecond.
    await setTimeout(10)
    shown.prompt = () => undefined
    expect((await read(api))[0]).toBe(404)
    setLive(false)
    setAway(true)
    expect(await read(api)).toEqual(unavailable)
  })
})
