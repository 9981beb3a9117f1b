import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Key } from "../support/archives.ts"
import type { makeResources } from "../support/database.ts"
import { type Cache, inHaste, nginxCache, noNginx, noVarnish, varnishCache } from "../support/edge.ts"
import { ask, type Origin, started } from "./suite.ts"

/** In place of 30 and 300 s, so that this takes seconds: what docs/edge.md says of those holds of these. */
const times = { fresh: 2, stale: 4 }
/** What nginx adds, which counts whole seconds. */
const slack = 1

const path = "/api/v1/prompts?per_page=2"
const idle = "/api/v1/prompts?per_page=3"

/** Each remedy of docs/edge.md, as a change of the examples in deploy/, and the examples as they are. */
describe.skipIf((noNginx ?? noVarnish) !== undefined)("how long a revoked key can still read", () => {
  let resources: ReturnType<typeof makeResources>
  let behind: Origin
  let hasty: { readonly port: number; delay: number }
  let caches: Readonly<Record<string, Cache>>

  /** What each cache does, all at once. */
  const ofEach = async <A>(of: (cache: Cache) => Promise<A>): Promise<Record<string, A>> =>
    Object.fromEntries(
      await Promise.all(Object.entries(caches).map(async ([name, cache]) => [name, await of(cache)]))
    )
  const bearer = ({ plaintext }: Key) => `Bearer ${plaintext}`
  const revoke = ({ stored }: Key) =>
    behind.database.sql("update api_keys set revoked_at = now() where id = $1", [stored.id])
  const statusOf = async ({ port }: Cache, path: string, key: Key) =>
    (await ask(port, path, bearer(key))).status

  beforeAll(async () => {
    ;({ resources, behind } = await started())
    hasty = await resources.acquire(inHaste(behind.service, times))
    const uncached = bearer(behind.mine.keys.second)
    const nginx = (change = {}) => resources.acquire(nginxCache(hasty, change))
    const varnish = (change = {}) => resources.acquire(varnishCache(hasty, change))
    caches = {
      nginx: await nginx(),
      Varnish: await varnish(),
      "nginx without stale answers": await nginx({
        "proxy_cache_background_update on;": "proxy_cache_background_update off;"
      }),
      "Varnish without stale answers": await varnish({
        "set beresp.keep = 0s;": "set beresp.keep = 0s; set beresp.grace = 0s;"
      }),
      "nginx without this key": await nginx({
        "proxy_cache_lock on;": `set $uncached 0;
          if ($http_authorization = "${uncached}") { set $uncached 1; }
          proxy_cache_bypass $uncached; proxy_no_cache $uncached; proxy_cache_lock on;`
      }),
      "Varnish without this key": await varnish({
        "return (hash);": `if (req.http.Authorization == "${uncached}") { return (pass); } return (hash);`
      })
    }
  })
  afterAll(() => resources?.release())

  it("which is read with all the time, or just once more", async () => {
    const { active: reader, second: revoked } = behind.mine.keys
    for (const key of [reader, revoked])
      for (const each of [path, idle])
        expect(new Set(Object.values(await ofEach((cache) => statusOf(cache, each, key))))).toEqual(
          new Set([200])
        )
    await revoke(revoked)
    const since = performance.now()

    /** When data was last read, in seconds from the revocation, and what an entry that nobody asked for says late. */
    const measured = await ofEach(async (cache) => {
      const late = setTimeout((times.fresh + times.stale - 1.5) * 1_000).then(async () => [
        await statusOf(cache, idle, revoked),
        await setTimeout(700).then(() => statusOf(cache, idle, revoked))
      ])
      let last = 0
      for (let refused = 0; refused < 15; await setTimeout(100)) {
        const at = performance.now()
        if ((await statusOf(cache, path, revoked)) === 401) refused++
        else {
          refused = 0
          last = (at - since) / 1_000
        }
      }
      return { last, late: await late }
    })
    const { fresh, stale } = times
    const between = (least: number, most: number) =>
      expect.toSatisfy((last: number) => last >= least && last <= most + slack, `${least} to ${most} s`)
    expect(measured).toEqual({
      nginx: { last: between(fresh + stale - 1, fresh + stale), late: [200, 200] },
      Varnish: { last: between(0.1, fresh), late: [200, 401] },
      "nginx without stale answers": { last: between(0.1, fresh), late: [401, 401] },
      "Varnish without stale answers": { last: between(0.1, fresh), late: [401, 401] },
      "nginx without this key": { last: 0, late: [401, 401] },
      "Varnish without this key": { last: 0, late: [401, 401] }
    })
    // The others' entries are kept as ever.
    for (const name of ["nginx without this key", "Varnish without this key"]) {
      const { port } = caches[name]!
      await ask(port, path, bearer(reader))
      expect(await ask(port, path, bearer(reader))).toMatchObject({ status: 200, stored: true })
    }
  }, 30_000)

  it("until the cache is purged", async () => {
    const { active: revoked } = behind.theirs.keys
    const purged = [caches.nginx!, caches.Varnish!]
    const read = () => Promise.all(purged.map((cache) => statusOf(cache, path, revoked)))
    await read()
    await revoke(revoked)
    expect(await read()).toEqual([200, 200])
    for (const { purge } of purged) await purge()
    expect(await read()).toEqual([401, 401])
  })

  it("without stale answers: in nginx those who ask while another is waiting for the refusal", async () => {
    const { second: revoked } = behind.theirs.keys
    await ofEach((cache) => statusOf(cache, path, revoked))
    await revoke(revoked)
    await setTimeout((times.fresh + 1.1) * 1_000)
    hasty.delay = 1_000
    try {
      const statuses = async (cache: Cache) => {
        const first = statusOf(cache, path, revoked)
        await setTimeout(300)
        const meanwhile = await statusOf(cache, path, revoked)
        return [await first, meanwhile, await statusOf(cache, path, revoked)]
      }
      expect(
        await Promise.all([
          statuses(caches["nginx without stale answers"]!),
          statuses(caches["Varnish without stale answers"]!)
        ])
      ).toEqual([
        [401, 200, 401],
        [401, 401, 401]
      ])
    } finally {
      hasty.delay = 0
    }
  })
})
