/** The tables of docs/scaling.md. */
import { readFileSync, writeFileSync } from "node:fs"
import {
  type Costs,
  computeCapacity,
  computePlan,
  plan,
  primaryConnections,
  processMemory,
  readCosts,
  standbyConnections,
  utilization
} from "./capacity.ts"
import { edgeLocations, edgeRates } from "./edge.ts"
import { findProcesses, findStandby, type Report } from "./report.ts"

/** Formats a number with three significant digits. */
const format = (value: number): string =>
  Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 3 })
const formatCount = (value: number): string => value.toLocaleString("en")
const formatPercent = (share: number): string => `${format(share * 100)} %`
const formatTimes = ({ p50, p99 }: { readonly p50: number; readonly p99: number }): string =>
  `${format(p50)}, ${format(p99)}`

const makeTable = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

const makeRunTable = ({ at, command, commit, cores, database, node, processors, took_seconds }: Report) =>
  makeTable(
    ["Date", "Command", "Duration", "Processors", "Program"],
    [
      [
        at.slice(0, 10),
        `\`${command}\``,
        `${formatCount(took_seconds)} s`,
        `${processors} (${cores} cores)`,
        `${commit}, Node ${node}, ${database}`
      ]
    ]
  )

const makeProcessesTable = (report: Report) =>
  makeTable(
    [
      "Requests",
      "Processes",
      "Steady: CPU of the services per request (µs)",
      "relative to one process",
      "CPU of PostgreSQL (µs)",
      "Full: requests/s",
      "CPU of the services per request (µs)",
      "CPU of PostgreSQL (µs)",
      "p50, p99 (ms)"
    ],
    report.processes.map((row) => [
      row.requests,
      formatCount(row.processes),
      format(row.steady.serviceCpu),
      format(row.steady.serviceCpu / findProcesses(report, row.requests, 1).steady.serviceCpu),
      format(row.steady.databaseCpu[0]!),
      format(row.requestsPerSecond),
      format(row.serviceCpu),
      format(row.databaseCpu[0]!),
      formatTimes(row)
    ])
  )

const makeStandbyTable = (report: Report) =>
  makeTable(
    [
      "Requests",
      "Servers",
      "Requests/s",
      "CPU of the service per request (µs)",
      "of the primary (µs)",
      "of the standby (µs)",
      "CPU of the primary, relative to no standby",
      "p50, p99 (ms)"
    ],
    report.standby.map((row) => [
      row.requests,
      row.standby ? "primary + standby" : "primary",
      format(row.requestsPerSecond),
      format(row.serviceCpu),
      format(row.databaseCpu[0]!),
      row.standby ? format(row.databaseCpu[1]!) : "",
      row.requests === "cached"
        ? ""
        : format(row.databaseCpu[0]! / findStandby(report, row.requests, false).databaseCpu[0]!),
      formatTimes(row)
    ])
  )

const makeWorkspacesTable = ({ workspaces }: Report) =>
  makeTable(
    [
      "Workspaces",
      "First read, p50, p99 (ms)",
      "CPU of service + PostgreSQL (µs)",
      "Zipf: cached",
      "Zipf: CPU of service + PostgreSQL (µs)",
      "Memory of the process (MiB)",
      "Database (MiB)"
    ],
    workspaces.map(({ workspaces, firstReads, mixed, hits, memory, database }) => [
      formatCount(workspaces),
      formatTimes(firstReads),
      `${format(firstReads.serviceCpu)} + ${format(firstReads.databaseCpu[0]!)}`,
      formatPercent(hits),
      `${format(mixed.serviceCpu)} + ${format(mixed.databaseCpu[0]!)}`,
      format(memory),
      format(database)
    ])
  )

const makePromptsTable = ({ prompts }: Report) =>
  makeTable(
    [
      "Prompts",
      "First read, p50, p99 (ms)",
      "CPU of service + PostgreSQL (µs)",
      "First page (ms)",
      "Last page (ms)",
      "First page after an edit (ms)",
      "Last page after an edit (ms)"
    ],
    prompts.map((row) => [
      formatCount(row.prompts),
      formatTimes(row.firstReads),
      `${format(row.firstReads.serviceCpu)} + ${format(row.firstReads.databaseCpu[0]!)}`,
      format(row.firstPage),
      format(row.lastPage),
      format(row.firstPageAfterEdit),
      format(row.lastPageAfterEdit)
    ])
  )

const makeEdgeTable = ({ edge }: Report) =>
  makeTable(
    [
      "Requests/s",
      ...edgeLocations.map((locations) => `${formatCount(locations)} ${locations === 1 ? "cache" : "caches"}`)
    ],
    edgeRates.map((rate) => [
      formatCount(rate),
      ...edgeLocations.map((locations) => {
        const row = edge.find((row) => row.requestsPerSecond === rate && row.locations === locations)!
        return `${formatPercent(row.origin)}; ${format(row.origin * rate)}/s; ${formatPercent(row.waiting)}`
      })
    ])
  )

const makeCostsTable = (report: Report, { cached, uncached, database }: Costs) => {
  const { hits, mixed } = report.workspaces.at(-1)!
  const [service, server] = [format(mixed.serviceCpu), format(mixed.databaseCpu[0]!)]
  const misses = `(100 % − ${formatPercent(hits)})`
  const toResult = (microseconds: number) =>
    `${format(microseconds)} µs; ${format(1e6 / microseconds)}/s per core`
  return makeTable(
    ["CPU time per request", "Arithmetic", "Result"],
    [
      ["cached, service", "1 process at full load", toResult(cached)],
      [
        "uncached, service",
        `(${service} µs − ${formatPercent(hits)} × ${format(cached)} µs) / ${misses}`,
        toResult(uncached)
      ],
      ["uncached, PostgreSQL", `${server} µs / ${misses}`, toResult(database)]
    ]
  )
}

const makeCapacityTable = (costs: Costs) =>
  makeTable(
    [
      "Requests/s",
      "Not cached",
      "Cores for the services",
      "Processes",
      "Memory of the processes (GiB)",
      "Cores for PostgreSQL",
      "Connections to PostgreSQL"
    ],
    [100, 1_000, 10_000, 100_000].flatMap((rate) =>
      [0.1, 1].map((uncachedShare) => {
        const { serviceCores, processes, databaseCores } = computeCapacity(costs, rate, uncachedShare)
        return [
          formatCount(rate),
          formatPercent(uncachedShare),
          format(serviceCores),
          formatCount(processes),
          format((processes * processMemory) / 1024),
          format(databaseCores),
          formatCount(processes * primaryConnections)
        ]
      })
    )
  )

const makePlanTable = (report: Report, costs: Costs) => {
  const { requestsPerSecond, regions } = plan
  const { perRegion, originShare, toService, entries, afterPurge, ...capacity } = computePlan(costs)
  const { serviceCores, processes, databaseCores } = capacity
  const largest = report.workspaces.at(-1)!
  const toCores = (microseconds: number) =>
    `${format(toService)}/s × ${format(microseconds)} µs / ${utilization}`
  return makeTable(
    ["One region", "Arithmetic", "Result"],
    [
      ["requests", `${formatCount(requestsPerSecond)}/s / ${regions} regions`, `${format(perRegion)}/s`],
      [
        "requests to the service",
        `${format(perRegion)}/s × ${formatPercent(originShare)}`,
        `${format(toService)}/s`
      ],
      ["cores for the services", toCores(costs.uncached), format(serviceCores)],
      ["processes", "one per core", formatCount(processes)],
      [
        "memory of the processes",
        `${formatCount(processes)} × ${processMemory} MiB`,
        `${format((processes * processMemory) / 1024)} GiB`
      ],
      [
        "cores for each standby, which may get all reads of the region",
        toCores(costs.database),
        format(databaseCores)
      ],
      [
        "connections to each standby, at most",
        `${formatCount(processes)} × ${standbyConnections}`,
        formatCount(processes * standbyConnections)
      ],
      ["responses in the region's cache", "at most 330 s old", `${format(entries)}`],
      [
        "memory of the region's cache",
        `${format(entries)} × 2 KiB`,
        `${format((entries * 2) / 1024 ** 2)} GiB`
      ],
      [
        "requests to the service in the second after a purge of everything",
        "one for each different response",
        `${format(afterPurge)}/s, ${format(afterPurge / toService)} times the usual rate`
      ],
      [
        "**All regions**: connections to the primary",
        `${regions} × ${formatCount(processes)} × ${primaryConnections}`,
        formatCount(regions * processes * primaryConnections)
      ],
      [
        "listeners for changes on the primary",
        `${regions} × ${formatCount(processes)}`,
        formatCount(regions * processes)
      ],
      [
        "database on the primary and each standby",
        `${formatCount(plan.responses)} workspaces × ${format((largest.database * 1024) / largest.workspaces)} KiB`,
        `${format((largest.database / largest.workspaces) * (plan.responses / 1024))} GiB`
      ]
    ]
  )
}

/** Returns the tables that a report has the measurements for, by their names in the document. */
export const makeTables = (report: Report): ReadonlyMap<string, string> => {
  const tables = new Map([
    ["run", makeRunTable(report)],
    ["edge", makeEdgeTable(report)]
  ])
  const { processes, standby, workspaces, prompts } = report
  if (standby.length > 0) tables.set("standby", makeStandbyTable(report))
  if (workspaces.length > 0) tables.set("workspaces", makeWorkspacesTable(report))
  if (prompts.length > 0) tables.set("prompts", makePromptsTable(report))
  if (processes.length > 0) {
    tables.set("processes", makeProcessesTable(report))
  }
  if (processes.length > 0 && workspaces.length > 0) {
    const costs = readCosts(report)
    tables.set("costs", makeCostsTable(report, costs))
    tables.set("capacity", makeCapacityTable(costs)).set("plan", makePlanTable(report, costs))
  }
  return tables
}

/** Replaces the text between the marks `<!-- table: NAME -->` and `<!-- end -->`. Throws if a table has no marks. */
export const replaceTables = (document: string, tables: ReadonlyMap<string, string>): string =>
  [...tables].reduce((text, [name, table]) => {
    const begin = `<!-- table: ${name} -->\n`
    const start = text.indexOf(begin)
    const end = text.indexOf("\n<!-- end -->", start)
    if (start < 0 || end < 0) throw new Error(`the document has no table ${name}`)
    return `${text.slice(0, start + begin.length)}\n${table}\n${text.slice(end)}`
  }, document)

export const writeTables = (path: string, tables: ReadonlyMap<string, string>): void =>
  writeFileSync(path, replaceTables(readFileSync(path, "utf8"), tables))
