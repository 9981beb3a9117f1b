/**
 * How long a revoked key can still read through nginx and Varnish with the configurations of deploy/, asking once a
 * second all the while: seconds from the revocation to the last answer with data. Takes 6 minutes, needs both and
 * PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/revocation.ts
 */
import { setTimeout } from "node:timers/promises"
import { makeResources } from "../test/support/database.ts"
import { nginxBefore, noNginx, noVarnish, origin, varnishBefore } from "../test/support/edge.ts"

const missing = noNginx ?? noVarnish
if (missing !== undefined) throw new Error(missing)

const resources = makeResources()
try {
  const { service, database, mine } = await resources.acquire(origin)
  const caches = {
    nginx: await resources.acquire(nginxBefore(service)),
    varnish: await resources.acquire(varnishBefore(service)),
    "the service itself": service.port
  }
  const statusAt = async (port: number, key: "active" | "second" = "active", path = "/api/v1/prompts") => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${mine.keys[key].plaintext}` }
    })
    await response.arrayBuffer()
    return response.status
  }
  for (const port of Object.values(caches)) {
    await statusAt(port)
    await statusAt(port, "active", "/api/v1/prompts?per_page=1")
  }
  await database.sql("update api_keys set revoked_at = now() where id = $1", [mine.keys.active.stored.id])
  const revoked = performance.now()
  const last: Record<string, number> = {}
  const lastUnread: Record<string, number> = {}
  for (let second = 0; second < 345; second++) {
    for (const [name, port] of Object.entries(caches)) {
      if ((await statusAt(port)) === 200) last[name] = Math.round((performance.now() - revoked) / 1000)
    }
    // An entry that nobody asks for meanwhile: its one late reader.
    if (second === 320) {
      for (const [name, port] of Object.entries(caches)) {
        lastUnread[name] = await statusAt(port, "active", "/api/v1/prompts?per_page=1")
      }
    }
    await setTimeout(1_000 - ((performance.now() - revoked) % 1_000))
  }
  for (const name of Object.keys(caches)) {
    console.log(
      `${name}: read each second, the last data came ${last[name] ?? 0} s after the revocation; an entry left alone for 320 s answers ${lastUnread[name]} once`
    )
  }
} finally {
  await resources.release()
}
