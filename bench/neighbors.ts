/**
 * Measures how requests for the largest values of one tenant delay the reads of another tenant. The first tenant sends
 * 90 requests at the same time. The second tenant sends two reads every 10 ms, one of them cached. The kind
 * `small prompts` is for comparison; every other kind of value has the largest size that the database accepts.
 *
 * Exits with 1 if one of these rules is broken: a cached read takes at most 250 ms, and an uncached read at most 500
 * ms. The process has at most 400 MiB and, after a minute without requests, at most 60 MiB more than at its start.
 * Every response to the second tenant is 200. No log line reports an outage. Takes five minutes and needs PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/neighbors.ts [PART OF A KIND'S NAME]
 */
import { setTimeout } from "node:timers/promises"
import { makeResources } from "../test/support/database.ts"
import { kinds, measureNeighbors, readResidentMiB, twoTenants } from "../test/support/neighbors.ts"

const maxCachedMs = 250
const maxUncachedMs = 500
const maxResidentMiB = 400
const maxGrowthMiB = 60

const slowest = (times: ReadonlyArray<number>): number => Math.round(Math.max(...times))
const columns = (...cells: ReadonlyArray<string | number>): string =>
  cells.map((cell, index) => (index === 0 ? String(cell).padEnd(26) : String(cell).padStart(10))).join("")

const part = process.argv[2] ?? ""
const resources = makeResources()
const faults: Array<string> = []
try {
  const tenants = await resources.acquire(twoTenants)
  const pid = tenants.service.process.pid!
  const start = readResidentMiB(pid)
  console.log(columns("slowest read, ms", "cached", "alone", "uncached", "alone", "MiB"))
  for (const kind of kinds.filter(({ name }) => name.includes(part))) {
    const { alone, meanwhile, large, peak } = await measureNeighbors(tenants, kind)
    const [cached, uncached] = [slowest(meanwhile.cached), slowest(meanwhile.uncached)]
    console.log(
      columns(kind.name, cached, slowest(alone.cached), uncached, slowest(alone.uncached), Math.round(peak)),
      JSON.stringify(large)
    )
    if (cached > maxCachedMs || uncached > maxUncachedMs || peak > maxResidentMiB) faults.push(kind.name)
    if (Object.keys(meanwhile.statuses).join() !== "200")
      faults.push(`${kind.name}: ${JSON.stringify(meanwhile.statuses)}`)
  }
  await setTimeout(60_000)
  const end = readResidentMiB(pid)
  console.log(`${Math.round(start)} MiB at the start, ${Math.round(end)} MiB after a minute without requests`)
  if (end - start > maxGrowthMiB) faults.push("memory stays")
  if (/unreachable/i.test(tenants.service.output())) faults.push("an outage was reported")
} finally {
  await resources.release()
}
for (const fault of faults) console.error(`Over a limit: ${fault}`)
if (faults.length > 0) process.exitCode = 1
