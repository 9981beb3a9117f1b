/**
 * Measures what one tenant's large prompts do to another tenant's small cold reads, with both tenants within the
 * default limits: 90 requests at once from the first tenant, and a request every 10 ms from the second. The second
 * tenant is measured three times: alone, while the same process serves the large requests, and while another
 * process serves them. The last is the control: large requests take processor time of this machine from the load
 * generator and the database too, and no process can isolate a tenant better than a second one does.
 *
 * Prints the latencies, the statuses, and the growth of resident memory. Exits with 1 when the second tenant gets
 * anything but 200, or when its 99th percentile is over `maxRatio` times that of the tenant alone and also that of
 * the control. Requests that are rejected without a read are over in 50 ms, so they are compared with as many small
 * reads, the first kind. Takes four minutes and needs PostgreSQL and a machine without other work.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/neighbors.ts [PART OF A KIND'S NAME]
 */
import { makeResources } from "../test/support/database.ts"
import { type Kind, kinds, measureNeighbors, type Tenants, twoTenants } from "../test/support/neighbors.ts"
import type { Service } from "../test/support/service.ts"
import { quantile } from "./load.ts"

const rounds = 3
const maxRatio = 2

type Statuses = Record<string, number>

const add = (total: Statuses, statuses: Readonly<Statuses>): void => {
  for (const [status, count] of Object.entries(statuses)) total[status] = (total[status] ?? 0) + count
}

const formatQuantiles = (times: ReadonlyArray<number>): string =>
  [0.5, 0.99, 1].map((q) => quantile(times, q).toFixed(1).padStart(9)).join("")

const printRow = (kind: string, row: string, times: ReadonlyArray<number>, remark = "") =>
  console.log(`${kind.padEnd(34)}${row.padEnd(18)}${formatQuantiles(times)}${remark}`)

/** Sends the burst of one kind to a process several times. */
const measureRounds = async (tenants: Tenants, kind: Kind, target: Service) => {
  const alone: Array<number> = []
  const meanwhile: Array<number> = []
  const large: Statuses = {}
  const small: Statuses = {}
  let growth = 0
  let duration = 0
  for (let round = 0; round < rounds; round++) {
    const result = await measureNeighbors(tenants, kind, target)
    alone.push(...result.alone)
    meanwhile.push(...result.meanwhile)
    add(large, result.large)
    add(small, result.small)
    growth = Math.max(growth, result.growth)
    duration = Math.max(duration, result.duration)
  }
  return { alone, meanwhile, large, small, growth, duration }
}

const part = process.argv[2] ?? ""
const resources = makeResources()
try {
  const tenants = await resources.acquire(twoTenants)
  const another = await resources.acquire(tenants.startAnother)
  console.log(`${"".padEnd(52)}      p50      p99      max`)
  let p99OfSmall = 0
  for (const kind of kinds.filter((kind) => kind === kinds[0] || kind.name.includes(part))) {
    const control = await measureRounds(tenants, kind, another)
    const same = await measureRounds(tenants, kind, tenants.service)
    const alone = [...control.alone, ...same.alone]
    const p99 = quantile(same.meanwhile, 0.99)
    const ratioToAlone = p99 / quantile(alone, 0.99)
    const ratioToControl = p99 / quantile(control.meanwhile, 0.99)
    if (kind === kinds[0]) p99OfSmall = p99
    const ratio = kind.status === 200 ? Math.min(ratioToAlone, ratioToControl) : p99 / p99OfSmall
    printRow(kind.name, "alone", alone)
    printRow("", "another process", control.meanwhile)
    printRow(
      "",
      "same process",
      same.meanwhile,
      `  p99 ${ratioToAlone.toFixed(2)} of alone, ${ratioToControl.toFixed(2)} of another process`
    )
    console.log(
      `  large ${JSON.stringify(same.large)} in ${same.duration.toFixed(0)} ms, small ${JSON.stringify(same.small)}, memory +${same.growth.toFixed(0)} MiB`
    )
    if (
      (kind !== kinds[0] && ratio > maxRatio) ||
      [control, same].some(({ small }) => Object.keys(small).some((status) => status !== "200"))
    )
      process.exitCode = 1
  }
} finally {
  await resources.release()
}
