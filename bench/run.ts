/** Runs the benchmark (`npm run bench`); bench/README.md describes it. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Scenario } from "./comparisons.ts"
import { createDataset } from "./dataset.ts"
import { type Harness, makeHarness, type Scale } from "./harness.ts"
import { startGenerator } from "./load.ts"
import { formatRow, type Measurement, type ReportRow, toReportRow } from "./measurement.ts"
import { scaling } from "./scaling.ts"
import { scenarios } from "./scenarios.ts"

/** The groups of scenarios that run only if `--only` names the group. */
const optionalGroups = ["scale", "live"]
const groups = [...new Set([...scenarios, ...scaling].map(({ group }) => group))]

const help = `npm run bench -- [options]
  --quick          short rounds, under two minutes
  --only A,B       only these groups: ${groups.join(", ")}; by default, all except ${optionalGroups.join(" and ")}
  --seconds N      length of one round against one server (2; quick 0.3)
  --rounds N       number of rounds (5; quick 3)
  --out DIR        directory of report.json (bench/results)`

const full: Scale = {
  seconds: 2,
  rounds: 5,
  starts: 7,
  coldReads: 100_000,
  mixedRequests: 1_000_000,
  imports: 2
}
const quick: Scale = {
  seconds: 0.3,
  rounds: 3,
  starts: 3,
  coldReads: 5_000,
  mixedRequests: 10_000,
  imports: 1
}

const readArguments = () => {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      seconds: { type: "string" },
      rounds: { type: "string" },
      out: { type: "string", default: join(import.meta.dirname, "results") },
      help: { type: "boolean", default: false }
    }
  })
  if (values.help) {
    console.log(help)
    process.exit(0)
  }
  const scale = values.quick ? quick : full
  const seconds = Number(values.seconds ?? scale.seconds)
  const rounds = Number(values.rounds ?? scale.rounds)
  const only = values.only?.split(",") ?? groups.filter((group) => !optionalGroups.includes(group))
  const unknown = only.find((name) => !groups.includes(name))
  if (unknown !== undefined) throw new Error(`there is no group ${unknown}`)
  if (!(seconds > 0 && seconds <= 60)) throw new Error("--seconds must be a number up to 60")
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) throw new Error("--rounds must be 1 to 20")
  return { only, out: values.out, quick: values.quick, scale: { ...scale, seconds, rounds } }
}

const parseArguments = (): ReturnType<typeof readArguments> => {
  try {
    return readArguments()
  } catch (error) {
    console.error(`${(error as Error).message}\n${help}`)
    return process.exit(2)
  }
}

/** Returns the measurements of a scenario. A scenario that fails has one measurement with a fault. */
const measure = async (scenario: Scenario, harness: Harness): Promise<ReadonlyArray<Measurement>> => {
  try {
    for (const workspace of scenario.workspaces) await harness.dataset.load(workspace)
    return await scenario.measure(harness)
  } catch (error) {
    return [{ title: scenario.title, unit: "", samples: [], fault: String((error as Error).message) }]
  }
}

const { only, out, quick: isQuick, scale } = parseArguments()
const selected = [...scenarios, ...scaling].filter(({ group }) => only.includes(group))
const started = performance.now()
const elapsedSeconds = () => Math.round((performance.now() - started) / 1000)
const serverUrl = process.env.TEST_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/test"
const createDatabase = () => createDataset(serverUrl)
const dataset = await createDatabase()
const generator = startGenerator()
const harness = makeHarness({ dataset, createDatabase, generator, scale })

let closing: Promise<void> | undefined
/** Stops every process and drops the database. A later call only waits for the first call. */
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
    console.error(`[${index + 1}/${selected.length}, ${elapsedSeconds()} s] ${scenario.title}`)
    for (const measurement of await measure(scenario, harness)) {
      const row = toReportRow(scenario.group, measurement)
      rows.push(row)
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
  took_seconds: elapsedSeconds(),
  quick: isQuick,
  scale,
  rows
}
mkdirSync(out, { recursive: true })
writeFileSync(join(out, "report.json"), `${JSON.stringify(report, null, 2)}\n`)
const missed = rows.filter(({ verdict }) => verdict === "MISSED" || verdict === "FAULT")
console.error(
  `${rows.length} measurements in ${report.took_seconds} s, ${missed.length} missed; ${join(out, "report.json")}`
)
process.exitCode = missed.length === 0 ? 0 : 1
