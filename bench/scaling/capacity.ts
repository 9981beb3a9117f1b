/** Computes the cores, processes and connections that a rate of requests needs from the measured CPU times. */
import { computeEdge, countRequested, edgeResponses } from "./edge.ts"
import { findProcesses, type Report } from "./report.ts"

/** The planned utilization of the processors. */
export const utilization = 0.5
/** The maximum memory of a process without large prompts, in MiB; a goal of the benchmark `memory`. */
export const processMemory = 450
/** The maximum number of connections that a process opens to the primary. */
export const primaryConnections = 12
/** The maximum number of connections that a process opens to a standby, in addition to those to the primary. */
export const standbyConnections = 6
/** At least two processes, so that one may fail. */
const minProcesses = 2

/** The CPU times of requests, in microseconds per request. */
export interface Costs {
  readonly cached: number
  readonly uncached: number
  /** The CPU time of PostgreSQL for an uncached request. */
  readonly database: number
}

/**
 * Returns the costs of requests. The cost of a cached request is that of one process at full load. The costs of an
 * uncached request are computed from the mixed requests with the largest number of workspaces: the cost of the cached
 * requests is subtracted. They include the lookups of keys that are not cached.
 */
export const readCosts = (report: Pick<Report, "processes" | "workspaces">): Costs => {
  const cached = findProcesses(report, "cached", 1).serviceCpu
  const { hits, mixed } = report.workspaces.at(-1)!
  return {
    cached,
    uncached: (mixed.serviceCpu - hits * cached) / (1 - hits),
    database: mixed.databaseCpu[0]! / (1 - hits)
  }
}

export interface Capacity {
  readonly serviceCores: number
  readonly processes: number
  readonly databaseCores: number
}

/** Computes the capacity for a rate of requests, of which a share is not cached. A process uses one core. */
export const computeCapacity = (
  { cached, uncached, database }: Costs,
  requestsPerSecond: number,
  uncachedShare: number
): Capacity => {
  const toCores = (microseconds: number) => (requestsPerSecond * microseconds) / 1e6 / utilization
  const serviceCores = toCores((1 - uncachedShare) * cached + uncachedShare * uncached)
  return {
    serviceCores,
    processes: Math.max(minProcesses, Math.ceil(serviceCores)),
    databaseCores: toCores(uncachedShare * database)
  }
}

export const plan = { requestsPerSecond: 1_000_000, regions: 3, responses: edgeResponses } as const

export interface Plan extends Capacity {
  /** The requests of one region, and those that its cache does not serve. */
  readonly perRegion: number
  readonly originShare: number
  readonly toService: number
  /** The responses in a region's cache. */
  readonly entries: number
  /** The different responses that a region's users request in the first second after its cache was emptied. */
  readonly afterPurge: number
}

/** Computes what one region of the plan needs. Every request that its cache does not serve counts as uncached. */
export const computePlan = (costs: Costs): Plan => {
  const { requestsPerSecond, regions } = plan
  const perRegion = requestsPerSecond / regions
  const { origin, entries } = computeEdge(requestsPerSecond, regions)
  const toService = perRegion * origin
  return {
    perRegion,
    originShare: origin,
    toService,
    entries,
    afterPurge: countRequested(perRegion),
    ...computeCapacity(costs, toService, 1)
  }
}
