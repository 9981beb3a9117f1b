import type { Dataset } from "./dataset.ts"
import { type Generator, type LoadResult, median, quantile, type Stream } from "./load.ts"
import { type ServerProcess, type Start, startServer } from "./processes.ts"

/** The length of a round, and the numbers of rounds, starts, requests and imports that a scenario measures. */
export interface Scale {
  /** How many seconds one round against one server takes. */
  readonly seconds: number
  readonly rounds: number
  readonly starts: number
  readonly coldReads: number
  readonly mixedRequests: number
  /** The number of imports of an archive. */
  readonly imports: number
}

/** The dataset, the load generator and the servers that scenarios measure with. */
export type Harness = ReturnType<typeof makeHarness>

export const makeHarness = (parts: {
  readonly dataset: Dataset
  /** Creates an empty database with the schema of this checkout. */
  readonly createDatabase: () => Promise<Dataset>
  readonly generator: Generator
  readonly scale: Scale
}) => {
  const running = new Set<Promise<ServerProcess>>()
  const byName = new Map<string, Promise<ServerProcess>>()
  const start = async (options: Start): Promise<ServerProcess> => {
    const starting = startServer(options)
    running.add(starting)
    const server = await starting
    return {
      ...server,
      stop: async () => {
        running.delete(starting)
        await server.stop()
      }
    }
  }
  return {
    ...parts,
    /** Starts a server. `close` stops the server if the server is still running. */
    start,
    /** Returns the server with this name, for scenarios that share a server. The first call starts the server. */
    shared: (name: string, options: () => Promise<Start>): Promise<ServerProcess> => {
      const server = byName.get(name) ?? options().then(start)
      byName.set(name, server)
      return server
    },
    close: async (): Promise<void> => {
      const started = await Promise.allSettled(running)
      await Promise.all(started.map((result) => result.status === "fulfilled" && result.value.stop()))
    }
  }
}

/** The result of one round against one server, and the CPU time that the server used, in seconds. */
interface RoundResult extends LoadResult {
  readonly cpuTime: number
}

/** The results of the rounds of two sides. */
export interface Rounds {
  readonly a: ReadonlyArray<RoundResult>
  readonly b: ReadonlyArray<RoundResult>
}

/** One side of a comparison. `streams` returns the requests of a round. Rounds are counted from 0. */
interface Side {
  readonly server: Pick<ServerProcess, "port" | "cpuTime">
  readonly streams: (round: number) => ReadonlyArray<Stream>
  /** Returns the requests of a round of the warm-up. Rounds of the warm-up are counted from 0. */
  readonly warmUp: (round: number) => ReadonlyArray<Stream>
}

/** The maximum number of rounds of a warm-up. On a slow machine, V8 optimizes the code of a server for up to 15 s. */
const maxWarmUpRounds = 15

/** A rate is steady once the best rates of two successive groups of three rounds differ by at most this share. */
const steadyChange = 0.05

/** Returns true once the best rate of the last three rounds is close to the best rate of the three rounds before. */
const isSteady = (rates: ReadonlyArray<number>): boolean => {
  if (rates.length < 6) return false
  const [earlier, last] = [Math.max(...rates.slice(-6, -3)), Math.max(...rates.slice(-3))]
  return Math.abs(last / earlier - 1) <= steadyChange
}

/** Sends requests to both sides in alternating rounds, until the rates of both sides are steady. */
const warmUp = async ({ generator, scale }: Harness, sides: ReadonlyArray<Side>): Promise<void> => {
  const warmed = sides.map((side) => ({ ...side, rates: [] as Array<number> }))
  for (let round = 0; round < maxWarmUpRounds && !warmed.every(({ rates }) => isSteady(rates)); round++)
    for (const { server, warmUp, rates } of warmed) {
      const load = { port: server.port, seconds: scale.seconds, streams: warmUp(round) }
      const { streams } = await generator.run(load)
      rates.push(streams.reduce((sum, { perSecond }) => sum + perSecond, 0))
    }
}

/** Measures two sides in alternating rounds, A B A B …, so that other load on the machine affects both equally. */
export const alternate = async (harness: Harness, a: Side, b: Side): Promise<Rounds> => {
  const { generator, scale } = harness
  const results: { a: Array<RoundResult>; b: Array<RoundResult> } = { a: [], b: [] }
  await warmUp(harness, [a, b])
  for (let round = 0; round < scale.rounds; round++) {
    for (const [side, into] of [
      [a, results.a],
      [b, results.b]
    ] as const) {
      const { port, cpuTime } = side.server
      const before = cpuTime()
      const load = { port, seconds: scale.seconds, streams: side.streams(round) }
      const result = await generator.run(load)
      into.push({ ...result, cpuTime: cpuTime() - before })
    }
  }
  return results
}

/** Extracts a value from the result of one round. */
export type Metric = (result: RoundResult) => number

export const perSecond =
  (stream: number): Metric =>
  (result) =>
    result.streams[stream]!.perSecond

export const latency =
  (q: number, stream: number): Metric =>
  (result) =>
    quantile(result.streams[stream]!.latencies, q)

/** The CPU time of the server per request of all streams, in microseconds. */
export const cpuPerRequest: Metric = ({ streams, cpuTime }) =>
  (cpuTime * 1e6) / streams.reduce((sum, { latencies }) => sum + latencies.length, 0)

export const ratios = ({ a, b }: Rounds, metric: Metric): ReadonlyArray<number> =>
  a.map((result, round) => metric(result) / metric(b[round]!))

const busy: Metric = (result) => result.busy

/** Returns the medians of both sides, and the greater median of the share of time in which the generator was busy. */
export const summarize = ({ a, b }: Rounds, names: readonly [string, string], stream: number) => {
  const reduce = (results: ReadonlyArray<RoundResult>, metric: Metric) => median(results.map(metric))
  const [nameA, nameB] = names
  return {
    [`${nameA} requests/s`]: reduce(a, perSecond(stream)),
    [`${nameB} requests/s`]: reduce(b, perSecond(stream)),
    [`${nameA} p50 ms`]: reduce(a, latency(0.5, stream)),
    [`${nameB} p50 ms`]: reduce(b, latency(0.5, stream)),
    [`${nameA} p99 ms`]: reduce(a, latency(0.99, stream)),
    [`${nameB} p99 ms`]: reduce(b, latency(0.99, stream)),
    [`${nameA} CPU µs per request`]: reduce(a, cpuPerRequest),
    [`${nameB} CPU µs per request`]: reduce(b, cpuPerRequest),
    "generator busy": Math.max(reduce(a, busy), reduce(b, busy))
  }
}
