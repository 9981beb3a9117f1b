/**
 * Measures how requests for the largest values of one tenant delay the reads of another tenant. The first tenant sends
 * 90 requests at the same time. The second tenant sends two reads every 10 ms, one of them cached. The kind
 * `small prompts` is for comparison. Every other kind of value has the largest size that the database accepts.
 *
 * Exits with 1 unless a cached read takes at most 250 ms and an uncached read at most 500 ms. The service must use at
 * most 400 MiB of memory and, after a minute without requests, at most 60 MiB more than at its start. Every response to
 * the second tenant must be 200, and no log line may report an outage. Takes five minutes and needs PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/neighbors.ts [PART OF A KIND'S NAME]
 */
import { writeFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { makeResources } from "../test/support/makeResources.ts"
import { readMemoryMiB } from "./command.ts"
import { startGenerator } from "./load.ts"
import { burstSize, kinds, runNeighbors } from "./neighbors/tenants.ts"

const maxCachedMs = 250
const maxUncachedMs = 500
const maxResidentMiB = 400
const maxGrowthMiB = 60
/** How long the second tenant reads, in seconds. The service responds to a request of the first tenant within 5 s. */
const seconds = 6

const columns = (...cells: ReadonlyArray<string | number>): string =>
  cells.map((cell, index) => (index === 0 ? String(cell).padEnd(26) : String(cell).padStart(10))).join("")

const part = process.argv[2] ?? ""
const resources = makeResources()
const generator = startGenerator()
const faults: Array<string> = []
try {
  const { service, small, fill } = await resources.acquire(runNeighbors)
  const pid = service.process.pid!
  const start = readMemoryMiB(pid, "VmRSS")
  let requests = 0
  /**
   * Reads the small prompt for some seconds. Returns the latencies of the slowest cached and the slowest uncached read.
   */
  const readSmall = async (seconds: number) => {
    const uncached = Array.from({ length: 100 * seconds }, () => `${small.path}?uncached=${requests++}`)
    const streams = [[small.path], uncached].map((targets) => ({
      ...{ targets, order: "in turn" as const, key: small.key, expect: 200 },
      ...{ connections: 50, rate: 100 }
    }))
    const result = await generator.run({ port: service.port, seconds, streams })
    return result.streams.map(({ latencies }) => Math.round(Math.max(...latencies))) as [number, number]
  }
  console.log(columns("slowest read, ms", "cached", "alone", "uncached", "alone", "MiB"))
  for (const kind of kinds.filter(({ name }) => name.includes(part))) {
    const sendLarge = await fill(kind)
    const [cachedAlone, uncachedAlone] = await readSmall(1)
    // Resets VmHWM, the peak of the resident memory.
    writeFileSync(`/proc/${pid}/clear_refs`, "5")
    const [[cached, uncached], statuses] = await Promise.all([readSmall(seconds), sendLarge(burstSize)])
    const peak = Math.round(readMemoryMiB(pid, "VmHWM"))
    console.log(
      columns(kind.name, cached, cachedAlone, uncached, uncachedAlone, peak),
      JSON.stringify(statuses)
    )
    if (cached > maxCachedMs || uncached > maxUncachedMs || peak > maxResidentMiB) faults.push(kind.name)
  }
  await setTimeout(60_000)
  const end = readMemoryMiB(pid, "VmRSS")
  console.log(`${Math.round(start)} MiB at the start, ${Math.round(end)} MiB after a minute without requests`)
  if (end - start > maxGrowthMiB) faults.push("memory stays")
  if (/unreachable/i.test(service.output())) faults.push("an outage was reported")
} finally {
  await generator.stop()
  await resources.release()
}
for (const fault of faults) console.error(`Over a limit: ${fault}`)
if (faults.length > 0) process.exitCode = 1
