import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { makeResources } from "../support/database.ts"
import { nginxBefore, noNginx, noVarnish, varnishBefore } from "../support/edge.ts"
import { ask, type Origin, started } from "./suite.ts"

const path = "/api/v1/prompts?per_page=2"

/** Both caches before one service, as each waits for the same 30 s. */
describe.skipIf((noNginx ?? noVarnish) !== undefined)("an entry that is no longer fresh", () => {
  let resources: ReturnType<typeof makeResources>
  let behind: Origin
  let ports: { readonly nginx: number; readonly varnish: number }

  beforeAll(async () => {
    ;({ resources, behind } = await started())
    ports = {
      nginx: await resources.acquire(nginxBefore(behind.service)),
      varnish: await resources.acquire(varnishBefore(behind.service))
    }
  })
  afterAll(() => resources?.release())

  it("is answered at once and fetched anew behind the caller's back; what a revoked key can still read", async () => {
    const { mine, database, service } = behind
    const reader = `Bearer ${mine.keys.active.plaintext}`
    const revoked = `Bearer ${mine.keys.second.plaintext}`
    const caches = Object.values(ports)
    const readAll = (key: string) =>
      Promise.all(
        caches.map(async (port) => {
          const { status, body, stored } = await ask(port, path, key)
          return { status, body, stored }
        })
      )
    const { body } = (await readAll(reader))[0]!
    await readAll(revoked)
    const fromEntries = caches.map(() => ({ status: 200, body, stored: true }))
    await database.sql("update prompts set title = 'Changed'")
    await database.sql("update api_keys set revoked_at = now() where id = $1", [mine.keys.second.stored.id])
    expect((await ask(service.port, path, revoked)).status).toBe(401)

    await setTimeout(20_000)
    // Fresh for 30 s: nobody asks the service.
    expect([await readAll(reader), await readAll(revoked)]).toEqual([fromEntries, fromEntries])

    await setTimeout(11_000)
    expect(await readAll(reader)).toEqual(fromEntries)
    for (const port of caches) {
      await expect
        .poll(async () => (await ask(port, path, reader)).body, { timeout: 5_000 })
        .toContain('"title":"Changed"')
    }

    expect(await readAll(revoked)).toEqual(fromEntries)
    // The refusal takes the place of Varnish's entry. nginx keeps its own: docs/edge.md says how long.
    await expect
      .poll(async () => (await ask(ports.varnish, path, revoked)).status, { timeout: 5_000 })
      .toBe(401)
    expect(await ask(ports.nginx, path, revoked)).toMatchObject({ status: 200, body, stored: true })
  }, 60_000)
})
