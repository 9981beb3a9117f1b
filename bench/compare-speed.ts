/**
 * Compares the speed of the service of this checkout with that of another checkout. Exits with 1 when a row of this
 * checkout is slower; bench/README.md describes the method and the verdicts.
 *
 *     npx node bench/compare-speed.ts ../other-checkout [--only A,B] [--seconds 0.5] [--rounds 10]
 *
 * Needs Linux and the PostgreSQL server at `TEST_DATABASE_URL`, where each service gets a temporary database with
 * the same rows.
 */
import { resolve } from "node:path"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import { createDataset, type Dataset, hundredThousand, thousand } from "./dataset.ts"
import { type Estimate, estimate, judge, type Verdict } from "./estimate.ts"
import { median, type Stream, startGenerator } from "./load.ts"
import { readOptions, sharedOptions } from "./options.ts"
import { makeServiceStart, root, type ServerProcess, startServer } from "./processes.ts"
import {
  eachOnce,
  makeStream,
  onePrompt,
  overLimit,
  page,
  prompt,
  resolved,
  shuffledPages,
  shuffledPrompts,
  thousandPrompts,
  unknownKeys,
  withEtags
} from "./requests.ts"

/** Each service gets this many requests before its speed is measured, so that Node has compiled its code. */
const warmUpRequests = 40_000
const maxWarmUpSeconds = 20

// ---- rows

/** The requests of one round; both services get the same requests. */
interface Requests {
  readonly warmUp: Stream
  /** The requests of the first and of the second run on each service. */
  readonly runs: readonly [Stream, Stream]
}

/** A kind of requests whose speed is compared. `--only` selects rows by their group. */
interface Row {
  readonly group: string
  readonly title: string
  readonly env?: Readonly<Record<string, string>>
  readonly makeRequests: (server: ServerProcess) => Requests | Promise<Requests>
}

const repeat = (stream: Stream): Requests => ({
  warmUp: { ...stream, maxRequests: warmUpRequests },
  runs: [stream, stream]
})

/** Creates a row that repeats its requests. */
const hotRow = (group: string, title: string, stream: Stream, env: Row["env"] = {}): Row => ({
  group,
  title,
  env,
  makeRequests: () => repeat(stream)
})

/** Creates a row that sends each request once, so that no response comes from the cache. */
const coldRow = (
  group: string,
  title: string,
  targets: ReadonlyArray<string>,
  overrides: Partial<Stream> = {}
): Row => ({
  group,
  title,
  makeRequests: () => {
    const slice = (start: number, end: number) =>
      eachOnce(makeStream(hundredThousand, targets.slice(start, end), overrides))
    const first = Math.min(warmUpRequests, targets.length / 3)
    const second = (first + targets.length) / 2
    return { warmUp: slice(0, first), runs: [slice(first, second), slice(second, targets.length)] }
  }
})

const resolvedPrompts = shuffledPrompts(hundredThousand, resolved)
const oneConnection = { connections: 1 }

const rows: ReadonlyArray<Row> = [
  hotRow("hot", "Resolved read, hot, one prompt", onePrompt),
  hotRow("hot", "Resolved read, hot, 1,000 prompts", thousandPrompts),
  {
    group: "conditional",
    title: "304, one prompt",
    makeRequests: async (server) => repeat(await withEtags(server, onePrompt))
  },
  hotRow("list", "List, hot, first page", makeStream(hundredThousand, [page(1)])),
  hotRow("list", "Versions, hot", makeStream(thousand, [`${prompt(thousand, 1)}/versions`])),
  hotRow("log", "Resolved read, hot, with log lines", onePrompt, { LOG_LEVEL: "Info" }),
  hotRow("rejection", "429, a key over its limit", overLimit, { RATE_LIMIT_PER_KEY: "1" }),
  hotRow("flood", "401, a flood of unknown keys", unknownKeys),
  coldRow("cold", "Resolved read, cold", resolvedPrompts),
  coldRow("cold", "Prompt, cold", shuffledPrompts(hundredThousand, prompt)),
  coldRow(
    "cold",
    "Version, cold",
    shuffledPrompts(hundredThousand, (workspace, i) => `${prompt(workspace, i)}/versions/1`)
  ),
  coldRow("pages", "List, another page each time", shuffledPages(hundredThousand)),
  hotRow("connection", "Resolved read, hot, one connection", { ...onePrompt, ...oneConnection }),
  coldRow("connection", "Resolved read, cold, one connection", resolvedPrompts, oneConnection)
]

// ---- arguments

const groups = [...new Set(rows.map(({ group }) => group)), "start"]
const help = `npx node bench/compare-speed.ts OTHER_CHECKOUT [options]
  --only A,B       only these groups: ${groups.join(", ")}
  --seconds N      length of one run on one service; a round has four runs (0.5)
  --rounds N       number of rounds (10)`

const {
  other,
  only,
  seconds = 0.5,
  rounds = 10
} = readOptions({ help, groups, maxRounds: 100 }, () => {
  const { values, positionals } = parseArgs({ options: sharedOptions, allowPositionals: true })
  const [other, ...extra] = positionals
  if (!values.help && (other === undefined || extra.length > 0))
    throw new Error("name exactly one other checkout")
  return { values, other: resolve(other ?? root) }
})

// ---- measurement

const sides = ["before", "after"] as const
type Side = (typeof sides)[number]
/** A value of the other checkout, `before`, and a value of this checkout, `after`. */
type Pair<A> = Readonly<Record<Side, A>>
/** The results of one round. */
type Round<A> = Pair<readonly [A, A]>

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

const checkouts: Pair<string> = { before: other, after: root }
const datasets: Partial<Record<Side, Dataset>> = {}
const generator = startGenerator()
const running = new Set<ServerProcess>()

const openDataset = async (side: Side): Promise<void> => {
  const serverUrl = process.env.TEST_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/test"
  const dataset = await createDataset(serverUrl, checkouts[side])
  datasets[side] = dataset
  await dataset.load(thousand)
  await dataset.load(hundredThousand)
}

const start = async (side: Side, env: Row["env"] = {}): Promise<ServerProcess> => {
  const server = await startServer({
    ...(await makeServiceStart(datasets[side]!.url, env)),
    checkout: checkouts[side],
    silent: env.LOG_LEVEL !== undefined
  })
  running.add(server)
  return server
}

const stop = async (server: ServerProcess): Promise<void> => {
  running.delete(server)
  await server.stop()
}

/** Runs an action on both sides in the order A B B A, so that other load on the machine affects both equally. */
const alternate = async <A>(action: (side: Side, run: 0 | 1) => Promise<A>): Promise<Round<A>> => {
  const first = await action("before", 0)
  const after = [await action("after", 0), await action("after", 1)] as const
  return { before: [first, await action("before", 1)], after }
}

/** What a request cost: seconds between responses, and seconds of CPU time of the service and of its database sessions. */
interface Cost {
  readonly time: number
  readonly cpu: number
  readonly database: number
}

const measureRun = async (side: Side, server: ServerProcess, requests: Stream): Promise<Cost> => {
  const { readSessions } = datasets[side]!
  const sessions = await readSessions()
  const cpu = server.cpuTime()
  const { streams } = await generator.run({ port: server.port, seconds, streams: [requests] })
  const { perSecond, latencies } = streams[0]!
  const cpuUsed = server.cpuTime() - cpu
  const sessionsUsed = [...(await readSessions())].map(([pid, time]) => time - (sessions.get(pid) ?? 0))
  return {
    time: 1 / perSecond,
    cpu: cpuUsed / latencies.length,
    database: sum(sessionsUsed) / latencies.length
  }
}

/** Measures one round with two new processes, because two processes of the same code differ in speed. */
const measureRow = async ({ env, makeRequests }: Row): Promise<Round<Cost>> => {
  const servers = { before: await start("before", env), after: await start("after", env) }
  const requests: Partial<Record<Side, Requests>> = {}
  for (const side of sides) {
    requests[side] = await makeRequests(servers[side])
    const { port } = servers[side]
    await generator.run({ port, seconds: maxWarmUpSeconds, streams: [requests[side].warmUp] })
  }
  const round = await alternate((side, run) => measureRun(side, servers[side], requests[side]!.runs[run]))
  for (const side of sides) await stop(servers[side])
  return round
}

/** What a start cost: the seconds and the seconds of CPU time until the first 200; MiB resident a second later. */
interface StartCost {
  readonly time: number
  readonly cpu: number
  readonly memory: number
}

const measureStarts = (): Promise<Round<StartCost>> =>
  alternate(async (side) => {
    const server = await start(side)
    const cpu = server.cpuTime()
    await setTimeout(1000)
    const memory = await server.memory()
    await stop(server)
    return { time: server.startDuration / 1000, cpu, memory }
  })

// ---- report

/** The values of one kind, by round. */
type Values = ReadonlyArray<Round<number>>

const select = <Key extends string>(
  results: ReadonlyArray<Round<Readonly<Record<Key, number>>>>,
  key: Key
): Values =>
  results.map(({ before, after }) => ({
    before: [before[0][key], before[1][key]],
    after: [after[0][key], after[1][key]]
  }))

const toEstimate = (values: Values): Estimate =>
  estimate(values.map(({ before, after }) => sum(after) / sum(before)))

const toMedian = (values: Values, side: Side): number => median(values.flatMap((round) => round[side]))

const formatLine = (title: string, before: string, after: string, cells: ReadonlyArray<string>): string =>
  `${title.padEnd(37)}${before.padStart(9)}${after.padStart(9)}  ${cells.map((cell) => cell.padEnd(19)).join("")}`

const formatEstimate = ({ ratio, low, high }: Estimate): string =>
  `${ratio.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`

const verdicts: Array<Verdict> = []

/** Prints one line and records its verdict; `format` formats a value of both sides. */
const print = (
  title: string,
  values: Values,
  format: (value: number) => string,
  noisy: ReadonlyArray<Estimate>,
  precise: ReadonlyArray<Estimate>
): void => {
  const verdict = judge(noisy, precise)
  verdicts.push(verdict)
  const cells = [...noisy, ...precise].map(formatEstimate)
  while (cells.length < 3) cells.push("")
  const [before, after] = sides.map((side) => format(toMedian(values, side)))
  console.log(formatLine(title, before!, after!, [...cells, verdict]))
}

const printRow = (title: string, results: ReadonlyArray<Round<Cost>>): void => {
  const [time, cpu, database] = [select(results, "time"), select(results, "cpu"), select(results, "database")]
  // The sessions of a row whose responses come from the cache use next to nothing.
  const usesDatabase = sides.some((side) => toMedian(database, side) > 0.1 * toMedian(cpu, side))
  print(
    title,
    time,
    (seconds) => `${Math.round(1 / seconds)}/s`,
    [toEstimate(time)],
    [toEstimate(cpu), ...(usesDatabase ? [toEstimate(database)] : [])]
  )
}

const printStarts = (results: ReadonlyArray<Round<StartCost>>): void => {
  const [time, cpu, memory] = [select(results, "time"), select(results, "cpu"), select(results, "memory")]
  const formatTime = (seconds: number) => `${Math.round(seconds * 1000)} ms`
  print("Start to the first 200", time, formatTime, [toEstimate(time)], [toEstimate(cpu)])
  print(
    "Resident memory after the start",
    memory,
    (mebibytes) => `${Math.round(mebibytes)} MiB`,
    [],
    [toEstimate(memory)]
  )
}

const repeatRounds = async <A>(title: string, measure: () => Promise<A>): Promise<ReadonlyArray<A>> => {
  const results: Array<A> = []
  for (let round = 1; round <= rounds; round++) {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${title}, round ${round} of ${rounds}`)
    results.push(await measure())
  }
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K")
  return results
}

let closing: Promise<void> | undefined
/** Stops every process and drops the databases; later calls do nothing. */
const close = (): Promise<void> => {
  closing ??= (async () => {
    await generator.stop()
    await Promise.all([...running].map(stop))
    for (const dataset of Object.values(datasets)) await dataset.drop()
  })()
  return closing
}
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void close().finally(() => process.exit(130)))

try {
  console.error("creating the databases")
  for (const side of sides) await openDataset(side)
  // The first start fills Node's compile cache, which the other starts use.
  for (const side of sides) await stop(await start(side))
  console.log(formatLine("", "before", "after", ["time", "CPU", "database CPU", "verdict"]))
  for (const row of rows.filter(({ group }) => only.includes(group)))
    printRow(row.title, await repeatRounds(row.title, () => measureRow(row)))
  if (only.includes("start")) printStarts(await repeatRounds("Start", measureStarts))
} finally {
  await close()
}
const count = (verdict: Verdict): number => verdicts.filter((each) => each === verdict).length
console.log(`${verdicts.length} rows, ${count("slower")} slower, ${count("unclear")} unclear`)
process.exitCode = count("slower") === 0 ? 0 : 1
