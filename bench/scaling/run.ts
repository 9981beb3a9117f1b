/** Runs the scaling benchmark (`npm run bench -- --scale`); docs/scaling.md describes its results. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { readOptions } from "../options.ts"
import { root } from "../processes.ts"
import { showProgress } from "../progress.ts"
import { drawScalingChart } from "./chart.ts"
import { type Context, openContext, type Sizes } from "./context.ts"
import { makeEdgeRows } from "./edge.ts"
import { measurePrompts, measureWorkspaces } from "./growth.ts"
import { measureProcesses, measureStandby } from "./instances.ts"
import { type Check, checkProcesses, checkStandby, type Report } from "./report.ts"
import { makeTables, writeTables } from "./tables.ts"

export const scalingGroups = ["processes", "standby", "workspaces", "prompts"] as const
type Group = (typeof scalingGroups)[number]

const full: Sizes = {
  rounds: 5,
  seconds: 3,
  warmUpReads: 10_000,
  uncachedReads: 8_000,
  loneReads: 1_000,
  mixedReads: 100_000,
  workspaces: [1_000, 10_000, 100_000, 1_000_000],
  prompts: [1_000, 10_000, 100_000, 1_000_000],
  neighbors: 100_000
}
const quick: Sizes = {
  rounds: 2,
  seconds: 0.8,
  warmUpReads: 4_000,
  uncachedReads: 2_000,
  loneReads: 500,
  mixedReads: 15_000,
  workspaces: [1_000, 10_000, 100_000],
  prompts: [1_000, 10_000, 100_000],
  neighbors: 10_000
}

/** The options of a run. */
export interface ScalingOptions {
  readonly only: ReadonlyArray<string>
  readonly quick: boolean
  /** The directory of scaling.json and scale.svg. */
  readonly out: string
  /** Whether to replace docs/scale.svg and the tables of docs/scaling.md. */
  readonly write: boolean
}

const help = `npm run bench -- --scale [options]
  --quick          small sizes, two to three minutes
  --only A,B       only these groups: ${scalingGroups.join(", ")}
  --out DIR        directory of scaling.json and scale.svg (bench/results)
  --write          also replace docs/scale.svg and the tables of docs/scaling.md, unless a group fails`

export const readScalingOptions = (): ScalingOptions => {
  const { values, only } = readOptions({ help, groups: scalingGroups, maxRounds: 0 }, () => {
    const parsed = parseArgs({
      options: {
        scale: { type: "boolean", default: true },
        help: { type: "boolean", default: false },
        only: { type: "string" },
        quick: { type: "boolean", default: false },
        out: { type: "string", default: join(root, "bench/results") },
        write: { type: "boolean", default: false }
      }
    })
    if (parsed.values.write && parsed.values.only !== undefined)
      throw new Error("--write needs all groups, so it excludes --only")
    return parsed
  })
  return { only, quick: values.quick, out: values.out, write: values.write }
}

const formatCheck = ({ title, measured, bound, met }: Check): string =>
  `${met ? "met   " : "MISSED"} ${title}: ${measured.toFixed(2)} (bound ${bound})`

/** Measures the selected groups, prints and writes the results, and returns true if every group meets its rules. */
export const runScaling = async ({ only, quick: isQuick, out, write }: ScalingOptions): Promise<boolean> => {
  const started = performance.now()
  const elapsedSeconds = () => Math.round((performance.now() - started) / 1000)
  let failures = 0
  showProgress("starting PostgreSQL")
  const { close, context: opening } = openContext(isQuick ? quick : full)
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void close().finally(() => process.exit(130)))

  /** Measures a group unless it is not selected. A group that fails has no rows. */
  const measure = async <Row>(
    group: Group,
    run: (context: Context) => Promise<ReadonlyArray<Row>>,
    check: (rows: ReadonlyArray<Row>) => ReadonlyArray<Check> = () => []
  ): Promise<ReadonlyArray<Row>> => {
    if (!only.includes(group)) return []
    showProgress(`[${elapsedSeconds()} s] ${group}`)
    try {
      const context = await opening
      await context.clear()
      const rows = await run(context)
      for (const result of check(rows)) {
        if (!result.met) failures++
        console.log(formatCheck(result))
      }
      return rows
    } catch (error) {
      failures++
      console.error(`FAULT  ${group}:`, error)
      return []
    }
  }

  try {
    const { version } = await opening
    const rows = {
      processes: await measure("processes", measureProcesses, checkProcesses),
      standby: await measure("standby", measureStandby, checkStandby),
      workspaces: await measure("workspaces", measureWorkspaces),
      prompts: await measure("prompts", measurePrompts),
      edge: makeEdgeRows()
    }
    const report: Report = {
      at: new Date().toISOString(),
      commit: execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim(),
      node: process.version,
      database: version,
      processors: `${cpus().length} x ${cpus()[0]?.model}`,
      cores: availableParallelism(),
      command: `npm run bench -- --scale${isQuick ? " --quick" : ""}`,
      took_seconds: elapsedSeconds(),
      ...rows
    }
    const tables = makeTables(report)
    for (const [name, table] of tables) console.log(`\n${name}\n\n${table}`)
    mkdirSync(out, { recursive: true })
    writeFileSync(join(out, "scaling.json"), `${JSON.stringify(report, null, 2)}\n`)
    const chart = drawScalingChart(report)
    writeFileSync(join(out, "scale.svg"), chart)
    if (write && failures === 0) {
      writeTables(join(root, "docs/scaling.md"), tables)
      writeFileSync(join(root, "docs/scale.svg"), chart)
    }
    showProgress(`${report.took_seconds} s, ${failures} failed; ${join(out, "scaling.json")}, scale.svg\n`)
    return failures === 0
  } finally {
    await close()
  }
}
