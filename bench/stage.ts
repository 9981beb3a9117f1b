import type { Dataset } from "./dataset.ts"
import { type Generator, type LoadResult, median, quantile, type Stream } from "./load.ts"
import { type ServerProcess, type Start, startServer } from "./processes.ts"

/** How long everything is measured. */
export interface Scale {
  /** Of one round against one server. */
  readonly seconds: number
  readonly rounds: number
  readonly starts: number
  readonly coldReads: number
  readonly mixedRequests: number
}

/** What the rows are measured with. */
export interface Stage {
  readonly dataset: Dataset
  readonly generator: Generator
  readonly scale: Scale
  /** Starts a server that ends with the benchmark, if not before. */
  readonly start: (start: Start) => Promise<ServerProcess>
  /** The same for one that several rows share: started once. */
  readonly shared: (name: string, start: () => Promise<Start>) => Promise<ServerProcess>
  readonly close: () => Promise<void>
}

export const makeStage = (dataset: Dataset, generator: Generator, scale: Scale): Stage => {
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
    dataset,
    generator,
    scale,
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

/** Rounds on two servers, or with two sets of requests, in turn. */
export interface Rounds {
  readonly a: ReadonlyArray<LoadResult>
  readonly b: ReadonlyArray<LoadResult>
}

/** One side of a comparison. The requests of each round are its own, counted from 0. */
export interface Side {
  readonly port: number
  readonly streams: (round: number) => ReadonlyArray<Stream>
  /** Requests before the first round; without any, what is measured is measured cold. */
  readonly warmUp?: ReadonlyArray<Stream>
}

/** Measures two sides a round each in turn, A B A B …, so that what else the machine does hits both alike. */
export const alternate = async ({ generator, scale }: Stage, a: Side, b: Side): Promise<Rounds> => {
  const results: { a: Array<LoadResult>; b: Array<LoadResult> } = { a: [], b: [] }
  for (const { port, warmUp } of [a, b])
    if (warmUp !== undefined) await generator.run({ port, seconds: scale.seconds, streams: warmUp })
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

/** A figure of one run's stream. */
export type Figure = (result: LoadResult) => number

export const perSecond =
  (stream = 0): Figure =>
  (result) =>
    result.streams[stream]!.perSecond

export const latency =
  (q: number, stream = 0): Figure =>
  (result) =>
    quantile(result.streams[stream]!.latencies, q)

export const ratios = ({ a, b }: Rounds, figure: Figure): ReadonlyArray<number> =>
  a.map((result, round) => figure(result) / figure(b[round]!))

const busy: Figure = (result) => result.busy

/** The medians behind the ratios, and how busy the generator was with the faster side. */
export const detailOf = ({ a, b }: Rounds, names: readonly [string, string], stream = 0) => {
  const of = (results: ReadonlyArray<LoadResult>, figure: Figure) => median(results.map(figure))
  const [nameA, nameB] = names
  return {
    [`${nameA} requests/s`]: of(a, perSecond(stream)),
    [`${nameB} requests/s`]: of(b, perSecond(stream)),
    [`${nameA} p50 ms`]: of(a, latency(0.5, stream)),
    [`${nameB} p50 ms`]: of(b, latency(0.5, stream)),
    [`${nameA} p99 ms`]: of(a, latency(0.99, stream)),
    [`${nameB} p99 ms`]: of(b, latency(0.99, stream)),
    "generator busy": Math.max(of(a, busy), of(b, busy))
  }
}
