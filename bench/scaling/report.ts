import { availableParallelism } from "node:os"
import type { EdgeRow } from "./edge.ts"
import type { PromptsRow, WorkspacesRow } from "./growth.ts"
import { type ProcessesRow, type RequestKind, type StandbyRow, steadyRates } from "./instances.ts"

/** The results of the scaling benchmark. A group that was not selected, or that failed, has no rows. */
export interface Report {
  readonly at: string
  readonly commit: string
  readonly node: string
  readonly database: string
  readonly processors: string
  /** The number of processors. */
  readonly cores: number
  readonly command: string
  readonly took_seconds: number
  readonly processes: ReadonlyArray<ProcessesRow>
  readonly standby: ReadonlyArray<StandbyRow>
  readonly workspaces: ReadonlyArray<WorkspacesRow>
  readonly prompts: ReadonlyArray<PromptsRow>
  readonly edge: ReadonlyArray<EdgeRow>
}

/** A rule that the measured values must meet. */
export interface Check {
  readonly title: string
  readonly measured: number
  readonly bound: number
  readonly met: boolean
}

/** Two services, their generators and PostgreSQL need this many cores of the same machine. */
const coresForTwoProcesses = 6
const minSpeedUp = 1.8
const maxCostRatio = 1.2
const maxPrimaryShare = 0.5
/** With less than this share of the steady rate, the processors were not idle, and the costs cannot be compared. */
const minSteadyShare = 0.95

export const findProcesses = (
  { processes }: Pick<Report, "processes">,
  requests: RequestKind,
  count: number
): ProcessesRow => processes.find((row) => row.requests === requests && row.processes === count)!

export const findStandby = (
  { standby }: Pick<Report, "standby">,
  requests: RequestKind,
  withStandby: boolean
): StandbyRow => standby.find((row) => row.requests === requests && row.standby === withStandby)!

const atMost = (title: string, measured: number, bound: number): Check => ({
  title,
  measured,
  bound,
  met: measured <= bound
})

const atLeast = (title: string, measured: number, bound: number): Check => ({
  title,
  measured,
  bound,
  met: measured >= bound
})

/** Compares several processes with one: the cost of a request, and the throughput if the machine has enough cores. */
export const checkProcesses = (rows: ReadonlyArray<ProcessesRow>): ReadonlyArray<Check> => {
  const find = (requests: RequestKind, count: number) => findProcesses({ processes: rows }, requests, count)
  const costs = rows
    .filter(({ processes }) => processes > 1)
    .map(({ requests, processes, steady }) =>
      atMost(
        `CPU time per ${requests} request with ${processes} processes, relative to one process`,
        steady.serviceCpu / find(requests, 1).steady.serviceCpu,
        maxCostRatio
      )
    )
  const rates = rows.map(({ requests, processes, steady }) =>
    atLeast(
      `Share of the steady rate of ${requests} requests that ${processes} processes responded to`,
      steady.requestsPerSecond / (steadyRates[requests] * processes),
      minSteadyShare
    )
  )
  const checks = [...costs, ...rates]
  if (availableParallelism() < coresForTwoProcesses) return checks
  const speedUp = find("cached", 2).requestsPerSecond / find("cached", 1).requestsPerSecond
  return [
    ...checks,
    atLeast("Cached requests per second of 2 processes, relative to one process", speedUp, minSpeedUp)
  ]
}

/** Compares the CPU time of the primary for uncached requests with a standby and without one. */
export const checkStandby = (rows: ReadonlyArray<StandbyRow>): ReadonlyArray<Check> => {
  const primaryCpu = (withStandby: boolean) =>
    findStandby({ standby: rows }, "uncached", withStandby).databaseCpu[0]!
  return [
    atMost(
      "CPU time of the primary per uncached request with a standby, relative to no standby",
      primaryCpu(true) / primaryCpu(false),
      maxPrimaryShare
    )
  ]
}
