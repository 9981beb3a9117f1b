import type { Dataset } from "./dataset.ts"
import { type Generator, type LoadResult, median, quantile, type Stream } from "./load.ts"
import { type ServerProcess, type Start, startServer } from "./processes.ts"

/** How long and how often scenarios measure. */
export interface Scale {
  /** The seconds of one round against one server. */
  readonly seconds: number
  readonly rounds: number
  readonly starts: number
  readonly coldReads: number
  readonly mixedRequests: number
  /** How often an archive is imported. */
  readonly imports: number
}

/** The dataset, the load generator and the servers that scenarios measure with. */
export interface Harness {
  readonly dataset: Dataset
  /** Creates an empty database with the schema of this checkout. */
  readonly createDatabase: () => Promise<Dataset>
  readonly generator: Generator
  readonly scale: Scale
  /** Starts a server that `close` stops if it still runs. */
  readonly start: (start: Start) => Promise<ServerProcess>
  /** Returns the server with a name. The first call starts the server, and several scenarios share it. */
  readonly shared: (name: string, start: () => Promise<Start>) => Promise<ServerProcess>
  readonly close: () => Promise<void>
}

export const makeHarness = (
  parts: Pick<Harness, "dataset" | "createDatabase" | "generator" | "scale">
): Harness => {
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
    start,
    shared: (name, options) => {
      const server = byName.get(name) ?? options().then(start)
      byName.set(name, server)
      return server
    },
    close: async () => {
      await Promise.all(
        [...running].map((starting) =>
          starting.then(
            (server) => server.stop(),
            () => {}
          )
        )
      )
    }
  }
}

/** The results of the rounds of two sides. */
export interface Rounds {
  readonly a: ReadonlyArray<LoadResult>
  readonly b: ReadonlyArray<LoadResult>
}

/** One side of a comparison. `streams` returns the requests of a round, counted from 0. */
export interface Side {
  readonly port: number
  readonly streams: (round: number) => ReadonlyArray<Stream>
  /** Returns the requests of a round of the warm-up, counted from 0. Without a warm-up, the first round is cold. */
  readonly warmUp?: (round: number) => ReadonlyArray<Stream>
}

/**
 * Maximum number of rounds of a warm-up. On a slow machine, V8 takes up to 15 s to optimize the code of a server.
 */
const maxWarmUpRounds = 10

/** The rate of a server is steady if the rates of two successive rounds differ by at most this share. */
const steadyDifference = 0.03

/** Sends requests to a side, round after round, until the rate is steady. */
const warmUpSide = async ({ generator, scale }: Harness, { port, warmUp }: Side): Promise<void> => {
  if (warmUp === undefined) return
  let previous = 0
  for (let round = 0; round < maxWarmUpRounds; round++) {
    const { streams } = await generator.run({ port, seconds: scale.seconds, streams: warmUp(round) })
    const rate = streams.reduce((sum, { perSecond }) => sum + perSecond, 0)
    if (Math.abs(rate - previous) <= steadyDifference * rate) return
    previous = rate
  }
}

/** Measures two sides in alternating rounds, A B A B …, so that other load on the machine affects both equally. */
export const alternate = async (harness: Harness, a: Side, b: Side): Promise<Rounds> => {
  const { generator, scale } = harness
  const results: { a: Array<LoadResult>; b: Array<LoadResult> } = { a: [], b: [] }
  for (const side of [a, b]) await warmUpSide(harness, side)
  for (let round = 0; round < scale.rounds; round++) {
    for (const [side, into] of [
      [a, results.a],
      [b, results.b]
    ] as const)
      into.push(
        await generator.run({ port: side.port, seconds: scale.seconds, streams: side.streams(round) })
      )
  }
  return results
}

/** Extracts a value from the result of one run. */
export type Metric = (result: LoadResult) => number

export const perSecond =
  (stream: number): Metric =>
  (result) =>
    result.streams[stream]!.perSecond

export const latency =
  (q: number, stream: number): Metric =>
  (result) =>
    quantile(result.streams[stream]!.latencies, q)

export const ratios = ({ a, b }: Rounds, metric: Metric): ReadonlyArray<number> =>
  a.map((result, round) => metric(result) / metric(b[round]!))

const busy: Metric = (result) => result.busy

/**
 * Returns the medians of both sides. For the share of time in which the generator was busy, returns the greater median.
 */
export const summarize = ({ a, b }: Rounds, names: readonly [string, string], stream: number) => {
  const reduce = (results: ReadonlyArray<LoadResult>, metric: Metric) => median(results.map(metric))
  const [nameA, nameB] = names
  return {
    [`${nameA} requests/s`]: reduce(a, perSecond(stream)),
    [`${nameB} requests/s`]: reduce(b, perSecond(stream)),
    [`${nameA} p50 ms`]: reduce(a, latency(0.5, stream)),
    [`${nameB} p50 ms`]: reduce(b, latency(0.5, stream)),
    [`${nameA} p99 ms`]: reduce(a, latency(0.99, stream)),
    [`${nameB} p99 ms`]: reduce(b, latency(0.99, stream)),
    "generator busy": Math.max(reduce(a, busy), reduce(b, busy))
  }
}
