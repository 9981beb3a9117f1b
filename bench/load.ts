import { once } from "node:events"
import { Worker } from "node:worker_threads"

/** Requests of one kind over separate connections. */
export interface Stream {
  readonly connections: number
  readonly targets: ReadonlyArray<string>
  readonly order: "in turn" | "at random"
  /** An API key. With `unknown`, each request has a different key, which is well-formed but does not exist. */
  readonly key: string
  /** The API key of each target, instead of `key`. */
  readonly keys?: ReadonlyArray<string>
  /** The value of `If-None-Match` for each target. Without a value, the stream does not send the header. */
  readonly etags?: ReadonlyArray<string | undefined>
  /**
   * The expected status of targets without an ETag. Targets with an ETag must get 304. Any other status, except
   * `alsoAllowed`, fails the run.
   */
  readonly expect: number
  /** A further status, which at most two responses of a run may have. */
  readonly alsoAllowed?: number
  readonly maxRequests?: number
  /**
   * The requests per second of all connections together. By default, the stream sends as many requests as the server can
   * handle.
   */
  readonly rate?: number
}

/** Returns the status that a stream expects in response to one of its targets. */
export const expectedStatus = ({ expect, etags }: Stream, index: number): number =>
  etags?.[index] === undefined ? expect : 304

/** One run of the generator. The run ends after `seconds`, or once every stream has sent its `maxRequests`. */
export interface Load {
  readonly port: number
  readonly seconds: number
  readonly streams: ReadonlyArray<Stream>
}

export interface StreamResult {
  readonly perSecond: number
  /** The latency of each response in milliseconds, in the order received. */
  readonly latencies: Float64Array
  /** The number of responses with each unexpected status. */
  readonly unexpected: Readonly<Record<string, number>>
  /** The number of connections that failed. */
  readonly faults: number
}

export interface LoadResult {
  readonly streams: ReadonlyArray<StreamResult>
  /**
   * The share of time in which the generator was busy. If the share is near 1, the generator limits the measurement.
   */
  readonly busy: number
}

/** Throws if a response of a run is unexpected, or if a connection failed. */
const assertExpected = (stream: Stream, { unexpected, faults, latencies }: StreamResult): void => {
  const isFault = Object.entries(unexpected).some(
    ([status, count]) => !(Number(status) === stream.alsoAllowed && count <= 2)
  )
  if (isFault || faults > 0 || latencies.length === 0)
    throw new Error(
      `${latencies.length} responses, of these unexpected ${JSON.stringify(unexpected)}; ${faults} failed connections`
    )
}

export type Generator = ReturnType<typeof startGenerator>

export const startGenerator = () => {
  const worker = new Worker(new URL("generator.ts", import.meta.url))
  return {
    /** Sends the requests of a load. */
    run: async (load: Load): Promise<LoadResult> => {
      worker.postMessage(load)
      const [result] = (await once(worker, "message")) as [LoadResult]
      for (const [index, stream] of load.streams.entries()) assertExpected(stream, result.streams[index]!)
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
