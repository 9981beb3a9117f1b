import { once } from "node:events"
import { Worker } from "node:worker_threads"

/** Requests of one kind, over connections of their own. */
export interface Stream {
  readonly connections: number
  readonly targets: ReadonlyArray<string>
  readonly order: "in turn" | "at random"
  /** A key, or `unknown` for another well-formed one each time that nobody has. */
  readonly key: string
  /** For each target what `If-None-Match` says. */
  readonly etags?: ReadonlyArray<string>
  /** The only status that is no fault. */
  readonly expect: number
  /** A status that may come twice in a run all the same. */
  readonly rarely?: number
  readonly maxRequests?: number
}

/** What one run sends: it ends after `seconds`, or once every stream has sent its `maxRequests`. */
export interface Load {
  readonly port: number
  readonly seconds: number
  readonly streams: ReadonlyArray<Stream>
}

export interface StreamResult {
  readonly perSecond: number
  /** Of each answer in milliseconds, in the order in which they came. */
  readonly latencies: Float64Array
  readonly statuses: Readonly<Record<string, number>>
  /** Connections that broke. */
  readonly faults: number
}

export interface LoadResult {
  readonly streams: ReadonlyArray<StreamResult>
  /** The share of the time in which the generator was not waiting: near 1, it is what limits. */
  readonly busy: number
}

/** Something was answered that no measurement should count. */
export class WrongAnswers extends Error {}

export interface Generator {
  /** Fails with WrongAnswers when any answer is not what its stream expects. */
  readonly run: (load: Load) => Promise<LoadResult>
  readonly stop: () => Promise<unknown>
}

const check = (stream: Stream, { statuses, faults, latencies }: StreamResult): void => {
  const wrong = Object.entries(statuses).filter(
    ([status, count]) => Number(status) !== stream.expect && !(Number(status) === stream.rarely && count <= 2)
  )
  if (wrong.length > 0 || faults > 0 || latencies.length === 0)
    throw new WrongAnswers(
      `expected ${stream.expect} alone, got ${JSON.stringify(statuses)} and ${faults} broken connections`
    )
}

export const startGenerator = (): Generator => {
  const worker = new Worker(new URL("generator.ts", import.meta.url))
  return {
    run: async (load) => {
      worker.postMessage(load)
      const [result] = (await once(worker, "message")) as [LoadResult]
      for (const [index, stream] of load.streams.entries()) check(stream, result.streams[index]!)
      return result
    },
    stop: () => worker.terminate()
  }
}

export const quantile = (values: ArrayLike<number>, q: number): number => {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]!
}

export const median = (values: ArrayLike<number>): number => {
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
