/**
 * Measures how long a revoked key can still read through nginx and Varnish with the configurations of deploy/ when
 * it reads once per second: the seconds from the revocation to the last response with data. Takes 6 minutes and
 * needs nginx, Varnish and PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/revocation.ts
 */
import { setTimeout } from "node:timers/promises"
import { makeResources } from "../test/support/database.ts"
import { startNginx, startOrigin, startVarnish } from "../test/support/edge.ts"

const resources = makeResources()
try {
  const { service, database, mine } = await resources.acquire(startOrigin)
  const caches = {
    nginx: await resources.acquire(startNginx(service)),
    varnish: await resources.acquire(startVarnish(service)),
    "the service": service.port
  }
  const readStatus = async (port: number, key: "active" | "second" = "active", path = "/api/v1/prompts") => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${mine.keys[key].plaintext}` }
    })
    await response.arrayBuffer()
    return response.status
  }
  for (const port of Object.values(caches)) {
    await readStatus(port)
    await readStatus(port, "active", "/api/v1/prompts?per_page=1")
  }
  await database.sql("update api_keys set revoked_at = now() where id = $1", [mine.keys.active.stored.id])
  const revokedAt = performance.now()
  const last: Record<string, number> = {}
  const lastUnread: Record<string, number> = {}
  for (let second = 0; second < 345; second++) {
    for (const [name, port] of Object.entries(caches)) {
      if ((await readStatus(port)) === 200) last[name] = Math.round((performance.now() - revokedAt) / 1000)
    }
    // The only late read of an entry that was not read in between.
    if (second === 320) {
      for (const [name, port] of Object.entries(caches)) {
        lastUnread[name] = await readStatus(port, "active", "/api/v1/prompts?per_page=1")
      }
    }
    await setTimeout(1_000 - ((performance.now() - revokedAt) % 1_000))
  }
  for (const name of Object.keys(caches)) {
    console.log(
      `${name}: with a read per second, the last data came ${last[name] ?? 0} s after the revocation; the first read of an entry after 320 s without reads gets ${lastUnread[name]}`
    )
  }
} finally {
  await resources.release()
}
