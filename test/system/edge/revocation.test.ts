import { setTimeout } from "node:timers/promises"
import { beforeAll, describe, expect, it } from "vitest"
import type { Key } from "../../support/archives.ts"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { forwardingProxy } from "../../support/network/forwardingProxy.ts"
import {
  type Cache,
  type Origin,
  startNginx,
  startOrigin,
  startVarnish
} from "../../support/programs/edge.ts"

/** How long caches serve fresh and stale responses, in seconds, instead of the 30 s and 300 s of the service. */
const times = { fresh: 2, stale: 6 }
/** How much longer nginx can serve a response, in seconds, because nginx counts whole seconds. */
const nginxRounding = 1

const path = "/api/v1/prompts?per_page=2"
const unreadPath = "/api/v1/prompts?per_page=3"

/** Each cache uses a configuration in deploy/, either unchanged or with a remedy that docs/edge.md describes. */
describe("a revoked key behind a cache", () => {
  const acquire = makeAcquire()
  let origin: Origin
  let caches: Readonly<Record<string, Cache>>

  /** Runs an operation on all caches concurrently. Returns the results by the name of the cache. */
  const mapCaches = async <A>(run: (cache: Cache) => Promise<A>): Promise<Record<string, A>> =>
    Object.fromEntries(
      await Promise.all(Object.entries(caches).map(async ([name, cache]) => [name, await run(cache)]))
    )
  const revoke = ({ stored }: Key) =>
    origin.database.sql("update api_keys set revoked_at = now() where id = $1", [stored.id])
  const readStatus = async ({ port }: Cache, path: string, key: Key) =>
    (await exchange(port, rawRequest(path, [`Authorization: Bearer ${key.plaintext}`]))).status

  beforeAll(async () => {
    origin = await acquire(startOrigin)
    const shorten = (text: string) =>
      text.replace("maxage=30,", `maxage=${times.fresh},`).replace(/=300$/, `=${times.stale}`)
    const proxy = forwardingProxy(origin.service, {
      response: (headers) => ({ ...headers, "cache-control": shorten(headers["cache-control"]!) })
    })
    const upstream = { port: await acquire(proxy) }
    const withoutStale = {
      nginx: { "proxy_cache_background_update on;": "proxy_cache_background_update off;" },
      varnish: { "set beresp.keep = 0s;": "set beresp.keep = 0s; set beresp.grace = 0s;" }
    }
    caches = {
      nginx: await acquire(startNginx(upstream)),
      Varnish: await acquire(startVarnish(upstream)),
      "nginx without stale responses": await acquire(startNginx(upstream, withoutStale.nginx)),
      "Varnish without stale responses": await acquire(startVarnish(upstream, withoutStale.varnish))
    }
  })

  it("a cache stops serving responses to a revoked key within the time that docs/edge.md states, even if the key is used constantly", async () => {
    const { second: revoked } = origin.mine.keys
    const fresh = Object.fromEntries(Object.keys(caches).map((name) => [name, 200]))
    for (const each of [path, unreadPath])
      expect(await mapCaches((cache) => readStatus(cache, each, revoked))).toEqual(fresh)
    await revoke(revoked)
    expect(await mapCaches((cache) => readStatus(cache, path, revoked))).toEqual(fresh)
    /** Reads until 15 successive responses of the cache are 401. Returns the time of the last 200. */
    const readUntilRejected = async (cache: Cache) => {
      let last = 0
      for (let rejections = 0; rejections < 15; await setTimeout(100))
        if ((await readStatus(cache, path, revoked)) === 401) rejections++
        else [last, rejections] = [performance.now(), 0]
      return last
    }
    const constantly = mapCaches(readUntilRejected)
    // The revoked key has not read `unreadPath` since its revocation. The responses are stale, but not too old.
    await setTimeout((times.fresh + nginxRounding) * 1_000)
    expect(await mapCaches((cache) => readStatus(cache, unreadPath, revoked))).toEqual({
      ...fresh,
      ...{ "nginx without stale responses": 401, "Varnish without stale responses": 401 }
    })
    // nginx serves stale responses until they are too old. Varnish stops after one response of the service.
    const last = await constantly
    expect(last.nginx).toBeGreaterThan(last["nginx without stale responses"]!)
    expect(last.nginx).toBeGreaterThan(last.Varnish!)
  })

  it("behind a cache, a revoked key can read nothing after the cache is purged", async () => {
    const { active: revoked } = origin.theirs.keys
    const purged = [caches.nginx!, caches.Varnish!]
    const read = () => Promise.all(purged.map((cache) => readStatus(cache, path, revoked)))
    await read()
    await revoke(revoked)
    expect(await read()).toEqual([200, 200])
    for (const { purge } of purged) await purge()
    expect(await read()).toEqual([401, 401])
  })
})
