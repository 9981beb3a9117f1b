/**
 * Measures what one tenant's large prompts do to another tenant's small cold reads, with both tenants within the default
 * limits: 90 requests at once from the first tenant, and a request every 10 ms from the second. Prints for each kind of
 * prompt the second tenant's latency alone and meanwhile, the statuses of both, and the growth of resident memory. Exits
 * with 1 when the second tenant gets anything but 200, or when its 99th percentile is over `maxRatio` times that of the tenant
 * alone and over that during 90 reads of small prompts, which also take some 50 ms. Takes two minutes, and needs
 * PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/neighbors.ts
 */
import { makeResources } from "../test/support/database.ts"
import { kinds, measureNeighbors, twoTenants } from "../test/support/neighbors.ts"
import { quantile } from "./load.ts"

const rounds = 3
const maxRatio = 2

const only = process.argv[2]
const resources = makeResources()
try {
  const tenants = await resources.acquire(twoTenants)
  const formatQuantiles = (times: ReadonlyArray<number>) =>
    [0.5, 0.99, 1].map((q) => quantile(times, q).toFixed(1).padStart(9)).join("")
  console.log(`${"".padEnd(48)}      p50      p99      max`)
  /** The 99th percentile during reads of small prompts, the first kind. */
  let p99OfSmall = 0
  for (const kind of kinds.filter(
    (kind) => only === undefined || kind === kinds[0] || kind.name.includes(only)
  )) {
    const alone: Array<number> = []
    const meanwhile: Array<number> = []
    const statuses: Record<string, Record<string, number>> = { large: {}, small: {} }
    const add = (tenant: "large" | "small", counts: Readonly<Record<string, number>>) => {
      for (const [status, count] of Object.entries(counts))
        statuses[tenant]![status] = (statuses[tenant]![status] ?? 0) + count
    }
    let growth = 0
    let duration = 0
    for (let round = 0; round < rounds; round++) {
      const result = await measureNeighbors(tenants, kind)
      alone.push(...result.alone)
      meanwhile.push(...result.meanwhile)
      add("large", result.large)
      add("small", result.small)
      growth = Math.max(growth, result.growth)
      duration = Math.max(duration, result.duration)
    }
    const p99 = quantile(meanwhile, 0.99)
    const ratio = p99 / quantile(alone, 0.99)
    if (kind === kinds[0]) p99OfSmall = p99
    console.log(`${kind.name.padEnd(38)}${"alone".padEnd(10)}${formatQuantiles(alone)}`)
    console.log(
      `${"".padEnd(38)}${"meanwhile".padEnd(10)}${formatQuantiles(meanwhile)}  p99 ratio ${ratio.toFixed(2)}`
    )
    console.log(
      `  large ${JSON.stringify(statuses.large)} in ${duration.toFixed(0)} ms, small ${JSON.stringify(statuses.small)}, memory +${growth.toFixed(0)} MiB`
    )
    if (
      !(ratio <= maxRatio || p99 <= p99OfSmall) ||
      Object.keys(statuses.small!).some((status) => status !== "200")
    )
      process.exitCode = 1
  }
} finally {
  await resources.release()
}
