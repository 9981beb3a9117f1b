import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { makeResources } from "../../support/database.ts"
import { shortenCacheTimes, startNginxCache, startVarnishCache } from "../../support/programs/edge.ts"
import { acquireOrigin, type Origin, send } from "./suite.ts"

const path = "/api/v1/prompts?per_page=2"

/** Seconds in place of the service's 30 s fresh and 300 s stale, so that the test takes seconds. */
const times = { fresh: 4, stale: 20 }

/** Both caches are in front of one service, so that the test waits only once. */
describe("an entry that is no longer fresh", () => {
  let resources: ReturnType<typeof makeResources>
  let origin: Origin
  let ports: { readonly nginx: number; readonly varnish: number }

  beforeAll(async () => {
    ;({ resources, origin } = await acquireOrigin())
    const upstream = await resources.acquire(shortenCacheTimes(origin.service, times))
    ports = {
      nginx: (await resources.acquire(startNginxCache(upstream))).port,
      varnish: (await resources.acquire(startVarnishCache(upstream))).port
    }
  })
  afterAll(() => resources?.release())

  it("nginx and Varnish serve a stale entry once while they refresh it; only Varnish replaces it with a 401", async () => {
    const { mine, database, service } = origin
    const reader = `Bearer ${mine.keys.active.plaintext}`
    const revoked = `Bearer ${mine.keys.second.plaintext}`
    const caches = Object.values(ports)
    const readAll = (key: string) =>
      Promise.all(
        caches.map(async (port) => {
          const { status, body, isStored } = await send(port, path, key)
          return { status, body, isStored }
        })
      )
    const { body } = (await readAll(reader))[0]!
    await readAll(revoked)
    const filledAt = performance.now()
    const fromEntries = caches.map(() => ({ status: 200, body, isStored: true }))
    await database.sql("update prompts set title = 'Changed'")
    await database.sql("update api_keys set revoked_at = now() where id = $1", [mine.keys.second.stored.id])
    expect((await send(service.port, path, revoked)).status).toBe(401)

    // The entries are fresh: the caches do not ask the service.
    expect([await readAll(reader), await readAll(revoked)]).toEqual([fromEntries, fromEntries])

    // nginx counts whole seconds.
    await setTimeout(filledAt + (times.fresh + 1) * 1_000 - performance.now())
    expect(await readAll(reader)).toEqual(fromEntries)
    for (const port of caches) {
      await expect
        .poll(async () => (await send(port, path, reader)).body, { timeout: 5_000 })
        .toContain('"title":"Changed"')
    }

    expect(await readAll(revoked)).toEqual(fromEntries)
    // The 401 replaces Varnish's entry. nginx keeps its entry for as long as docs/edge.md says.
    await expect
      .poll(async () => (await send(ports.varnish, path, revoked)).status, { timeout: 5_000 })
      .toBe(401)
    expect(await send(ports.nginx, path, revoked)).toMatchObject({ status: 200, body, isStored: true })
  })
})
