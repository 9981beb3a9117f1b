/**
 * Measures how stale the responses of two services of one database become when a change is made in SQL: the
 * milliseconds from the commit to the last request with an outdated response, of the slower service, under load, by
 * kind of change. Exits with 1 when the 99th percentile is over 100 ms. Takes about a minute and needs PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/freshness.ts
 */
import { makeResources } from "../test/support/database.ts"
import { listChanges, measureStaleness, quantile, twoServices } from "../test/support/freshness.ts"
import { startLoad } from "../test/support/load.ts"

const rounds = 120
const maxP99Ms = 100

const resources = makeResources()
try {
  const services = await resources.acquire(twoServices)
  const { archive, keys } = services.tenant
  /** Reads every prompt from both services, with the key that some changes revoke. */
  const load = startLoad(
    [services.near, services.far].flatMap(({ url }) =>
      archive.prompts.map(({ id }) => `${url}/api/v1/prompts/${id}/resolved`)
    ),
    { authorization: `Bearer ${keys.active.plaintext}` }
  )
  const byKind = new Map<string, Array<number>>()
  const all: Array<number> = []
  try {
    for (let round = 0; round < rounds; round++) {
      for (const change of listChanges(services.tenant, round)) {
        const time = await measureStaleness(services, change)
        all.push(time)
        byKind.set(change.name, [...(byKind.get(change.name) ?? []), time])
      }
    }
  } finally {
    console.log("responses to the load", await load.stop())
  }
  const formatQuantiles = (times: ReadonlyArray<number>) =>
    [0.5, 0.99, 1].map((share) => quantile(times, share).toFixed(1).padStart(8)).join("")
  console.log(`${"change".padEnd(20)}${"count".padStart(7)}     p50     p99     max`)
  for (const [name, times] of [...byKind, ["all", all] as const]) {
    console.log(`${name.padEnd(20)}${String(times.length).padStart(7)}${formatQuantiles(times)}`)
  }
  if (quantile(all, 0.99) > maxP99Ms) process.exitCode = 1
} finally {
  await resources.release()
}
