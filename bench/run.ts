/** `npm run bench`: see bench/README.md. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { chart } from "./chart.ts"
import { createDataset } from "./dataset.ts"
import { startGenerator } from "./load.ts"
import { type Measurement, type Reported, reported } from "./measurement.ts"
import { type Row, rows } from "./rows.ts"
import { makeStage, type Scale } from "./stage.ts"

const groups = [...new Set(rows.map(({ group }) => group))]

const help = `npm run bench -- [options]
  --quick          every row in short rounds, under two minutes
  --only A,B       some groups alone: ${groups.join(", ")}
  --seconds N      of one round against one server (3; quick 0.3)
  --rounds N       (5; quick 3)
  --out DIR        where report.json and chart.svg go (bench/results)`

const full: Scale = { seconds: 3, rounds: 5, starts: 7, coldReads: 100_000, mixedRequests: 1_000_000 }
const quick: Scale = { seconds: 0.3, rounds: 3, starts: 3, coldReads: 5_000, mixedRequests: 10_000 }

const wrongUsage = (message: string): never => {
  console.error(`${message}\n${help}`)
  process.exit(2)
}

const parse = () =>
  parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", default: groups.join(",") },
      seconds: { type: "string" },
      rounds: { type: "string" },
      out: { type: "string", default: join(import.meta.dirname, "results") },
      help: { type: "boolean", default: false }
    }
  }).values

const readArguments = () => {
  let values: ReturnType<typeof parse>
  try {
    values = parse()
  } catch (error) {
    return wrongUsage((error as Error).message)
  }
  if (values.help) {
    console.log(help)
    process.exit(0)
  }
  const only = values.only.split(",")
  const unknown = only.find((name) => !groups.includes(name))
  if (unknown !== undefined) wrongUsage(`there is no group ${unknown}`)
  const scale = values.quick ? quick : full
  const seconds = Number(values.seconds ?? scale.seconds)
  const rounds = Number(values.rounds ?? scale.rounds)
  if (!(seconds > 0 && seconds <= 60)) wrongUsage("--seconds must be a number up to 60")
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) wrongUsage("--rounds must be 1 to 20")
  return { only, out: values.out, quick: values.quick, scale: { ...scale, seconds, rounds } }
}

const progress = (text: string): void => {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}

const goalOf = ({ at_least, at_most, aim }: Reported): string =>
  aim === undefined ? "" : `${at_least === undefined ? `<= ${at_most}` : `>= ${at_least}`}, aim ${aim}`

const verdictOf = ({ met, aim_met, fault }: Reported): string =>
  fault !== undefined ? "FAULT" : met === undefined ? "" : aim_met ? "aim" : met ? "met" : "MISSED"

const printed = (report: Reported): string => {
  const { title, measured, min, max, unit, fault, samples } = report
  const spread = samples.length > 1 ? ` (${min}–${max})` : ""
  const value = fault ?? `${measured}${spread} ${unit}`
  return `${verdictOf(report).padEnd(7)}${title.padEnd(52)}${value.padEnd(48)}${goalOf(report)}`
}

/** A row that can't be measured is a row of the report too. */
const measure = async (
  row: Row,
  stage: ReturnType<typeof makeStage>
): Promise<ReadonlyArray<Measurement>> => {
  try {
    for (const workspace of row.workspaces) await stage.dataset.load(workspace)
    return await row.measure(stage)
  } catch (error) {
    return [{ title: row.title, unit: "", samples: [], fault: String((error as Error).message) }]
  }
}

const { only, out, quick: isQuick, scale } = readArguments()
const chosen = rows.filter(({ group }) => only.includes(group))
const started = performance.now()

progress("creating the database")
const dataset = await createDataset(
  process.env.TEST_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/test"
)
const generator = startGenerator()
const stage = makeStage(dataset, generator, scale)

/** Ends every process and drops the database, once, however the benchmark ends. */
let closing: Promise<void> | undefined
const close = (): Promise<void> => {
  closing ??= (async () => {
    await generator.stop()
    await stage.close()
    await dataset.drop()
  })()
  return closing
}
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void close().finally(() => process.exit(130)))

const results: Array<Reported> = []
try {
  for (const [index, row] of chosen.entries()) {
    const elapsed = Math.round((performance.now() - started) / 1000)
    progress(`[${index + 1}/${chosen.length}, ${elapsed} s] ${row.title}`)
    for (const measurement of await measure(row, stage)) {
      const report = reported(row.group, measurement)
      results.push(report)
      if (process.stderr.isTTY) progress("")
      console.log(printed(report))
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
  rows: results
}
mkdirSync(out, { recursive: true })
writeFileSync(join(out, "report.json"), `${JSON.stringify(report, null, 2)}\n`)
writeFileSync(join(out, "chart.svg"), chart(report))
const missed = results.filter(({ met, fault }) => met === false || fault !== undefined)
progress(
  `${results.length} rows in ${report.took_seconds} s, ${missed.length} missed; ${join(out, "report.json")}, chart.svg\n`
)
process.exitCode = missed.length === 0 ? 0 : 1
