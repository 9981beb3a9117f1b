/** Measures several processes of the service, and a standby of PostgreSQL. */
import { setTimeout } from "node:timers/promises"
import type { Stream } from "../load.ts"
import { eachOnce } from "../requests.ts"
import { type Context, connections, drawRequests, population, type Service, tenants } from "./context.ts"
import { type DatabaseServer, type LoadCost, type ServiceLoad, summarizeCosts } from "./loadCost.ts"
import { readPrompt, toStream, withoutCache } from "./tenants.ts"

export const processCounts = [1, 2, 4] as const

/** The number of workspaces whose requests are all served from the response cache of each process. */
const cachedWorkspaces = 1_000

export const requestKinds = ["cached", "uncached"] as const
export type RequestKind = (typeof requestKinds)[number]

/** The fixed rates at which the costs of processes are compared, in requests per second to each process. */
export const steadyRates = { cached: 4_000, uncached: 300 } as const

export interface ProcessesRow extends LoadCost {
  readonly requests: RequestKind
  readonly processes: number
  /** The cost of a fixed number of requests per second to each process, which leaves processors idle. */
  readonly steady: LoadCost
}

export interface StandbyRow extends LoadCost {
  readonly requests: RequestKind
  /** Whether the service reads from a standby. */
  readonly standby: boolean
  /** The share of the reads of prompts and keys that ran on the standby. */
  readonly standbyReads: number
}

/** The length of the sequence of cached requests, which each stream repeats. */
const repeatedRequests = 20_000

let seed = 0
/** Returns the requests of one round. Uncached requests read the same prompts with different parameters. */
const makeStream = (kind: RequestKind, uncachedReads: number): Stream =>
  kind === "cached"
    ? toStream(drawRequests(repeatedRequests, cachedWorkspaces, ++seed), connections)
    : eachOnce(toStream(drawRequests(uncachedReads, population, ++seed).map(withoutCache), connections))

/** Fills the caches with every response of the cached requests. */
const makeFillingLoad = (service: Service): ServiceLoad => {
  const requests = Array.from({ length: cachedWorkspaces }, (_, index) =>
    Array.from({ length: tenants.promptsEach }, (_, prompt) => readPrompt(tenants, index + 1, prompt + 1))
  ).flat()
  return { service, stream: eachOnce(toStream(requests, connections)) }
}

/** Measures one round at the highest rate that the services respond to. */
const measureRound = async (
  { measure, sizes }: Context,
  services: ReadonlyArray<Service>,
  kind: RequestKind,
  servers: ReadonlyArray<DatabaseServer>
): Promise<LoadCost> => {
  if (kind === "cached") await measure(services.map(makeFillingLoad))
  const loads = services.map((service) => ({ service, stream: makeStream(kind, sizes.uncachedReads) }))
  return measure(loads, servers, kind === "cached" ? sizes.seconds : undefined)
}

/** Measures one round of a fixed number of requests per second to each service. */
const measureSteadyRound = async (
  { measure, primary, sizes }: Context,
  services: ReadonlyArray<Service>,
  kind: RequestKind
): Promise<LoadCost> => {
  if (kind === "cached") await measure(services.map(makeFillingLoad))
  const [rate, seconds] = [steadyRates[kind], 2 * sizes.seconds]
  const loads = services.map((service) => ({
    service,
    stream: { ...makeStream(kind, rate * seconds), rate }
  }))
  return measure(loads, [primary], seconds)
}

/** Sends both kinds of requests until Node has compiled the code of the services. */
const warmUp = async ({ measure, sizes }: Context, services: ReadonlyArray<Service>): Promise<void> => {
  for (const kind of requestKinds)
    await measure(
      services.map((service) => ({
        service,
        stream: { ...makeStream(kind, sizes.warmUpReads), maxRequests: sizes.warmUpReads }
      }))
    )
}

/** Measures 1, 2 and 4 processes in alternating rounds. Each process has the same number of connections. */
export const measureProcesses = async (context: Context): Promise<ReadonlyArray<ProcessesRow>> => {
  await context.load(tenants, population)
  const services: Array<Service> = []
  while (services.length < Math.max(...processCounts)) services.push(await context.startService())
  await warmUp(context, services)
  const rows: Array<ProcessesRow> = []
  for (const requests of requestKinds) {
    const rounds = processCounts.map((processes) => ({
      processes,
      services: services.slice(0, processes),
      full: [] as Array<LoadCost>,
      steady: [] as Array<LoadCost>
    }))
    for (let round = 0; round < context.sizes.rounds; round++)
      for (const { services, full, steady } of rounds) {
        full.push(await measureRound(context, services, requests, [context.primary]))
        steady.push(await measureSteadyRound(context, services, requests))
      }
    for (const { processes, full, steady } of rounds)
      rows.push({ requests, processes, ...summarizeCosts(full), steady: summarizeCosts(steady) })
  }
  for (const service of services) await service.stop()
  return rows
}

const countReads = async ({ readMetric }: Service): Promise<{ standby: number; primary: number }> => ({
  standby: await readMetric('replica_reads_total{target="replica"}'),
  primary: await readMetric('replica_reads_total{target="primary"}')
})

/** Returns the share of the reads during `run` that ran on the standby. */
const measureStandbyReads = async (service: Service, run: () => Promise<void>): Promise<number> => {
  const before = await countReads(service)
  await run()
  const after = await countReads(service)
  const [standby, primary] = [after.standby - before.standby, after.primary - before.primary]
  return standby + primary === 0 ? 0 : standby / (standby + primary)
}

/** The least share of the reads that must run on the standby for the measurement to be valid. */
const minStandbyReads = 0.9

/** Waits until nearly all reads run on the standby. */
const waitForStandby = async (context: Context, service: Service): Promise<void> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const share = await measureStandbyReads(service, async () => {
      await context.measure([{ service, stream: makeStream("uncached", 100) }])
    })
    if (share >= minStandbyReads) return
    await setTimeout(200)
  }
  throw new Error("the standby is not used")
}

/** Measures a process on the primary alone, and a process that also reads from a standby, in alternating rounds. */
export const measureStandby = async (context: Context): Promise<ReadonlyArray<StandbyRow>> => {
  const { load, primary, sizes, startService, withStandby } = context
  await load(tenants, population)
  return withStandby(async (standby) => {
    const alone = await startService()
    const replicated = await startService({ DATABASE_REPLICA_URL: standby.url })
    await waitForStandby(context, replicated)
    await warmUp(context, [alone])
    await warmUp(context, [replicated])
    const rows: Array<StandbyRow> = []
    for (const requests of requestKinds) {
      const rounds = { alone: [] as Array<LoadCost>, replicated: [] as Array<LoadCost> }
      const standbyReads = await measureStandbyReads(replicated, async () => {
        for (let round = 0; round < sizes.rounds; round++) {
          rounds.alone.push(await measureRound(context, [alone], requests, [primary, standby]))
          rounds.replicated.push(await measureRound(context, [replicated], requests, [primary, standby]))
        }
      })
      if (requests === "uncached" && standbyReads < minStandbyReads)
        throw new Error(`only ${Math.round(standbyReads * 100)} % of the reads ran on the standby`)
      rows.push(
        { requests, standby: false, standbyReads: 0, ...summarizeCosts(rounds.alone) },
        { requests, standby: true, standbyReads, ...summarizeCosts(rounds.replicated) }
      )
    }
    for (const service of [alone, replicated]) await service.stop()
    return rows
  })
}
