/** Measures the cost of requests to one or several services, for the services and for the PostgreSQL servers. */
import type { Sql } from "postgres"
import { readCpuTime } from "../cpuTime.ts"
import { type Generator, median, quantile, type Stream } from "../load.ts"
import type { ServerProcess } from "../processes.ts"

/** A PostgreSQL server whose CPU time is measured. */
export interface DatabaseServer {
  readonly url: string
  /** Returns the CPU time that each process of the server has used so far, in seconds, by process id. */
  readonly readCpuTimes: () => Promise<ReadonlyMap<number, number>>
}

/** A service and the requests that it gets. */
export interface ServiceLoad {
  readonly service: ServerProcess
  readonly stream: Stream
}

/** The cost of requests. Times are in milliseconds, CPU times in microseconds per request. */
export interface LoadCost {
  readonly requestsPerSecond: number
  readonly p50: number
  readonly p99: number
  /** The CPU time of all services together. */
  readonly serviceCpu: number
  /** The CPU time of each server. */
  readonly databaseCpu: ReadonlyArray<number>
}

const readIfAlive = (pid: number): number | undefined => {
  try {
    return readCpuTime(pid)
  } catch {
    return undefined
  }
}

/** Observes a PostgreSQL server on this machine. */
export const observeServer = (url: string, sql: Sql): DatabaseServer => ({
  url,
  readCpuTimes: async () => {
    const processes = await sql<Array<{ pid: number }>>`
      select pid from pg_stat_activity where pid <> pg_backend_pid()`
    const times = new Map<number, number>()
    for (const { pid } of processes) {
      const time = readIfAlive(pid)
      if (time !== undefined) times.set(pid, time)
    }
    return times
  }
})

/** Returns the CPU time that processes have used since `before`, except those that have ended. */
const sumIncrease = (before: ReadonlyMap<number, number>, after: ReadonlyMap<number, number>): number =>
  [...after].reduce((sum, [pid, time]) => sum + time - (before.get(pid) ?? 0), 0)

/**
 * Sends each service its requests at the same time, each from a generator in a separate thread, for `seconds` or until
 * every stream has sent its `maxRequests`.
 */
export const measureCost = async (
  generators: ReadonlyArray<Generator>,
  loads: ReadonlyArray<ServiceLoad>,
  seconds: number,
  servers: ReadonlyArray<DatabaseServer>
): Promise<LoadCost> => {
  const readServices = () => loads.reduce((sum, { service }) => sum + service.cpuTime(), 0)
  const readServers = () => Promise.all(servers.map((server) => server.readCpuTimes()))
  const [servicesBefore, serversBefore] = [readServices(), await readServers()]
  // A generator runs one load at a time, so all of them must have ended before one may fail.
  const runs = await Promise.allSettled(
    loads.map(({ service, stream }, index) =>
      generators[index]!.run({ port: service.port, seconds, streams: [stream] })
    )
  )
  const [servicesAfter, serversAfter] = [readServices(), await readServers()]
  const results = runs.map((run) => {
    if (run.status === "rejected") throw run.reason
    return run.value.streams[0]!
  })
  const latencies = Float64Array.from(results.flatMap(({ latencies }) => [...latencies]))
  const toMicroseconds = (cpuSeconds: number) => (cpuSeconds * 1e6) / latencies.length
  return {
    requestsPerSecond: results.reduce((sum, { perSecond }) => sum + perSecond, 0),
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    serviceCpu: toMicroseconds(servicesAfter - servicesBefore),
    databaseCpu: serversAfter.map((after, index) => toMicroseconds(sumIncrease(serversBefore[index]!, after)))
  }
}

/** Returns the cost with the medians of the rounds. */
export const summarizeCosts = (rounds: ReadonlyArray<LoadCost>): LoadCost => {
  const take = (value: (cost: LoadCost) => number) => median(rounds.map(value))
  return {
    requestsPerSecond: take(({ requestsPerSecond }) => requestsPerSecond),
    p50: take(({ p50 }) => p50),
    p99: take(({ p99 }) => p99),
    serviceCpu: take(({ serviceCpu }) => serviceCpu),
    databaseCpu: rounds[0]!.databaseCpu.map((_, server) => take(({ databaseCpu }) => databaseCpu[server]!))
  }
}
