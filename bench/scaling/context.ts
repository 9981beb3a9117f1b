/** The resources that all groups of the scaling benchmark share: PostgreSQL servers, services, load generators and rows. */
import { setTimeout } from "node:timers/promises"
import postgres, { type Sql } from "postgres"
import { allWorkspaces, channel } from "../../src/adapters/outbound/postgres/NotifyChannel.ts"
import { freshCluster, makeStandby } from "../../test/support/cluster.ts"
import { makeResources } from "../../test/support/database.ts"
import { makeRandom } from "../../test/support/random.ts"
import { createDataset, type Dataset, insertRows } from "../dataset.ts"
import { type Generator, startGenerator } from "../load.ts"
import { makeServiceStart, root, type ServerProcess, startServer } from "../processes.ts"
import {
  type DatabaseServer,
  type LoadCost,
  measureCost,
  observeServer,
  type ServiceLoad
} from "./loadCost.ts"
import { makeStatements, readPrompt, type TenantRequest, type Tenants } from "./tenants.ts"
import { makeSampler, makeZipfShares } from "./zipf.ts"

/** The sizes of the measurements. */
export interface Sizes {
  readonly rounds: number
  /** The seconds of one round of cached requests. */
  readonly seconds: number
  /** The number of warm-up requests of each kind, after which Node has compiled the code of a service. */
  readonly warmUpReads: number
  /** The number of uncached requests to each process in one round. */
  readonly uncachedReads: number
  /** The number of uncached requests that a single caller sends in one round. */
  readonly loneReads: number
  /** The number of requests of a mix of cached and uncached requests. */
  readonly mixedReads: number
  /** The numbers of workspaces, in ascending order. */
  readonly workspaces: ReadonlyArray<number>
  /** The numbers of prompts in one workspace, in ascending order. */
  readonly prompts: ReadonlyArray<number>
  /** The number of small workspaces in the same database as the workspaces with these numbers of prompts. */
  readonly neighbors: number
}

/** The exponent of the distribution of requests over workspaces. */
export const zipfExponent = 1

/** The number of connections to each process. */
export const connections = 32

/** The workspaces with few prompts. */
export const tenants: Tenants = { group: 1, promptsEach: 2 }

/** The number of workspaces in the groups `processes` and `standby`. */
export const population = 10_000

/** A running service. */
export interface Service extends ServerProcess {
  /** Returns the current value of a metric series; `series` omits the prefix `prompt_retrieval_`. */
  readonly readMetric: (series: string) => Promise<number>
}

export interface Context {
  readonly sizes: Sizes
  /** The version of PostgreSQL. */
  readonly version: string
  readonly primary: DatabaseServer
  readonly sql: Sql
  /** Inserts workspaces until there are `count`. */
  readonly load: (tenants: Tenants, count: number) => Promise<void>
  /** Deletes all workspaces. No service may run. */
  readonly clear: () => Promise<void>
  /** Starts a service that `close` stops if it still runs. At least one workspace of `tenants` must be loaded. */
  readonly startService: (env?: Readonly<Record<string, string>>) => Promise<Service>
  /** Runs `use` with a standby of the primary, and stops the standby. */
  readonly withStandby: <A>(use: (standby: DatabaseServer) => Promise<A>) => Promise<A>
  /** Sends each service its requests at the same time, and measures the services and the servers. */
  readonly measure: (
    loads: ReadonlyArray<ServiceLoad>,
    servers?: ReadonlyArray<DatabaseServer>,
    seconds?: number
  ) => Promise<LoadCost>
  /** Removes the entries of a workspace, or all entries, from the caches of all services, as an edit does. */
  readonly invalidate: (workspaceId?: string) => Promise<void>
}

/** A context that is being created. */
export interface OpenContext {
  readonly context: Promise<Context>
  /** Ends all services and PostgreSQL servers, and removes their files; later calls do nothing more. */
  readonly close: () => Promise<void>
}

/** Draws requests for the first workspaces by Zipf's law. Popularity does not follow the order of the ids. */
export const drawRequests = (
  count: number,
  workspaces: number,
  seed: number
): ReadonlyArray<TenantRequest> => {
  const random = makeRandom(seed)
  const draw = makeSampler(makeZipfShares(workspaces, zipfExponent), random.uniform)
  const step = 7_919 // a prime that divides no number of workspaces
  return Array.from({ length: count }, () => {
    const tenant = 1 + ((draw() * step) % workspaces)
    return readPrompt(tenants, tenant, 1 + random.int(tenants.promptsEach))
  })
}

/** The settings of the PostgreSQL servers. Autovacuum would run at times that differ between runs. */
const settings = ["shared_buffers=512MB", "max_wal_size=4GB", "autovacuum=off"]

/** The time within which every service has received a notification, in milliseconds. */
const notificationMs = 100

/** The time limit of a load that ends after a number of requests, in seconds. */
const maxSeconds = 120

const makeMetricReader =
  (port: string) =>
  async (series: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const line = text.split("\n").find((line) => line.startsWith(`prompt_retrieval_${series} `))
    if (line === undefined) throw new Error(`there is no metric ${series}`)
    return Number(line.split(" ").at(-1))
  }

/** Starts a PostgreSQL server with the tables of the service. */
export const openContext = (sizes: Sizes): OpenContext => {
  const resources = makeResources()
  const services = new Set<Promise<ServerProcess>>()
  const generators: Array<Generator> = []
  const sessions: Array<Sql> = []
  let dataset: Dataset | undefined
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await Promise.all(generators.map((generator) => generator.stop()))
      await Promise.all([...services].map((starting) => starting.then(({ stop }) => stop()).catch(() => {})))
      await Promise.all(sessions.map((sql) => sql.end({ timeout: 1 })))
      try {
        await dataset?.drop()
      } finally {
        await resources.release()
      }
    })()
    return closing
  }
  /** Throws if `close` was called, because `close` does not stop servers that are started later. */
  const assertOpen = (): void => {
    if (closing !== undefined) throw new Error("the benchmark was interrupted")
  }
  const connect = (url: string): Sql => {
    const sql = postgres(url, { max: 1, onnotice: () => {} })
    sessions.push(sql)
    return sql
  }

  const create = async (): Promise<Context> => {
    const cluster = await resources.acquire(freshCluster)
    assertOpen()
    await cluster.start(settings)
    dataset = await createDataset(cluster.url, root)
    const { server: version, url } = dataset
    const sql = connect(url)
    const loaded = new Map<Tenants, number>()

    return {
      sizes,
      version,
      primary: observeServer(url, sql),
      sql,
      load: async (tenants, count) => {
        const first = (loaded.get(tenants) ?? 0) + 1
        if (first > count) return
        await insertRows(sql, makeStatements(tenants, first, count))
        // Otherwise the server would write these pages during a measurement.
        await sql`checkpoint`
        loaded.set(tenants, count)
      },
      clear: async () => {
        await sql`truncate workspaces, users cascade`
        loaded.clear()
      },
      startService: async (env = {}) => {
        const start = await makeServiceStart(url, env)
        assertOpen()
        const starting = startServer({ ...start, probe: { ...readPrompt(tenants, 1), expect: 200 } })
        services.add(starting)
        const service = await starting
        return {
          ...service,
          readMetric: makeMetricReader(start.env.METRICS_PORT!),
          stop: async () => {
            services.delete(starting)
            await service.stop()
          }
        }
      },
      withStandby: async (use) => {
        const standby = await resources.acquire(makeStandby(cluster))
        assertOpen()
        await standby.start(settings)
        const standbyUrl = new URL(standby.url)
        standbyUrl.pathname = new URL(url).pathname
        try {
          return await use(observeServer(standbyUrl.href, connect(standbyUrl.href)))
        } finally {
          await standby.stop()
        }
      },
      measure: (loads, servers = [], seconds = maxSeconds) => {
        while (generators.length < loads.length) generators.push(startGenerator())
        return measureCost(generators, loads, seconds, servers)
      },
      invalidate: async (workspaceId = allWorkspaces) => {
        await sql`select pg_notify(${channel}, ${workspaceId})`
        await setTimeout(notificationMs)
      }
    }
  }
  return { context: create(), close }
}
