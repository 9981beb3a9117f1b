/** Runs the benchmark (`npm run bench`); bench/README.md describes it. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { drawChart } from "./chart.ts"
import type { Scenario } from "./comparisons.ts"
import { createDataset } from "./dataset.ts"
import { type Harness, makeHarness, type Scale } from "./harness.ts"
import { startGenerator } from "./load.ts"
import { type Measurement, type ReportRow, toReportRow } from "./measurement.ts"
import { readOptions, sharedOptions } from "./options.ts"
import { root } from "./processes.ts"
import { showProgress } from "./progress.ts"
import { readScalingOptions, runScaling } from "./scaling/run.ts"
import { scenarios } from "./scenarios.ts"

const groups = [...new Set(scenarios.map(({ group }) => group))]

const help = `npm run bench -- [options]
  --quick          all scenarios in short rounds, under two minutes
  --only A,B       only these groups: ${groups.join(", ")}
  --seconds N      length of one round against one server (2; quick 0.3)
  --rounds N       number of rounds (5; quick 3)
  --out DIR        directory of report.json and chart.svg (bench/results)
  --scale          measure 1 to 4 processes, a standby and up to a million workspaces instead; see --scale --help`

const full: Scale = {
  seconds: 2,
  rounds: 5,
  starts: 7,
  coldReads: 100_000,
  mixedRequests: 1_000_000,
  imports: 2,
  importedPrompts: 100_000
}
const quick: Scale = {
  seconds: 0.3,
  rounds: 3,
  starts: 3,
  coldReads: 5_000,
  mixedRequests: 10_000,
  imports: 1,
  importedPrompts: 10_000
}

const readArguments = () => {
  const { values, only, seconds, rounds } = readOptions({ help, groups, maxRounds: 20 }, () =>
    parseArgs({
      options: {
        ...sharedOptions,
        quick: { type: "boolean", default: false },
        out: { type: "string", default: join(import.meta.dirname, "results") }
      }
    })
  )
  const scale = values.quick ? quick : full
  return {
    only,
    out: values.out,
    quick: values.quick,
    scale: { ...scale, seconds: seconds ?? scale.seconds, rounds: rounds ?? scale.rounds }
  }
}

const formatGoal = ({ at_least, at_most, aim }: ReportRow): string =>
  aim === undefined ? "" : `${at_least === undefined ? `<= ${at_most}` : `>= ${at_least}`}, aim ${aim}`

const formatVerdict = ({ met, aim_met, fault }: ReportRow): string =>
  fault !== undefined ? "FAULT" : met === undefined ? "" : aim_met ? "aim" : met ? "met" : "MISSED"

const formatRow = (row: ReportRow): string => {
  const { title, measured, min, max, unit, fault, samples } = row
  const spread = samples.length > 1 ? ` (${min}–${max})` : ""
  const value = fault ?? `${measured}${spread} ${unit}`
  return `${formatVerdict(row).padEnd(7)}${title.padEnd(52)}${value.padEnd(48)}${formatGoal(row)}`
}

/** Measures a scenario. A scenario that fails becomes one measurement with a fault. */
const measure = async (scenario: Scenario, harness: Harness): Promise<ReadonlyArray<Measurement>> => {
  try {
    for (const workspace of scenario.workspaces) await harness.dataset.load(workspace)
    return await scenario.measure(harness)
  } catch (error) {
    return [{ title: scenario.title, unit: "", samples: [], fault: String((error as Error).message) }]
  }
}

/** Measures the selected scenarios, prints and writes the results, and returns true if no scenario misses its goal. */
const runScenarios = async (): Promise<boolean> => {
  const { only, out, quick: isQuick, scale } = readArguments()
  const selected = scenarios.filter(({ group }) => only.includes(group))
  const started = performance.now()

  showProgress("creating the database")
  const createDatabase = () =>
    createDataset(process.env.TEST_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/test", root)
  const dataset = await createDatabase()
  const generator = startGenerator()
  const harness = makeHarness({ dataset, createDatabase, generator, scale })

  let closing: Promise<void> | undefined
  /** Stops every process and drops the database; later calls do nothing. */
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await generator.stop()
      await harness.close()
      await dataset.drop()
    })()
    return closing
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void close().finally(() => process.exit(130)))

  const rows: Array<ReportRow> = []
  try {
    for (const [index, scenario] of selected.entries()) {
      const elapsed = Math.round((performance.now() - started) / 1000)
      showProgress(`[${index + 1}/${selected.length}, ${elapsed} s] ${scenario.title}`)
      for (const measurement of await measure(scenario, harness)) {
        const row = toReportRow(scenario.group, measurement)
        rows.push(row)
        if (process.stderr.isTTY) showProgress("")
        console.log(formatRow(row))
      }
    }
  } finally {
    await close()
  }

  const report = {
    at: new Date().toISOString(),
    commit: execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim(),
    node: process.version,
    database: dataset.server,
    processors: `${cpus().length} x ${cpus()[0]?.model}`,
    took_seconds: Math.round((performance.now() - started) / 1000),
    quick: isQuick,
    scale,
    rows
  }
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, "report.json"), `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(join(out, "chart.svg"), drawChart(report))
  const missed = rows.filter(({ met, fault }) => met === false || fault !== undefined)
  showProgress(
    `${rows.length} measurements in ${report.took_seconds} s, ${missed.length} missed; ${join(out, "report.json")}, chart.svg\n`
  )
  return missed.length === 0
}

const hasPassed = process.argv.includes("--scale")
  ? await runScaling(readScalingOptions())
  : await runScenarios()
process.exitCode = hasPassed ? 0 : 1
