import { readFileSync } from "node:fs"
import { Agent, get } from "node:http"
import { setTimeout } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import makeSql from "postgres"
import type { LoadResult } from "../../bench/load.ts"
import { archive, type Key, key, user, workspace } from "./archives.ts"
import { connectTo, postgres } from "./database.ts"
import { type Service, startService } from "./service.ts"

/** One kind of large prompt that a tenant may have. */
export interface Kind {
  readonly name: string
  readonly path: "" | "/resolved" | "/versions/1"
  /** The status that each of its requests must have. */
  readonly status: number
  readonly contentBytes: number
  /** How many fragments of `fragmentBytes` each prompt uses. */
  readonly fragments: number
  readonly fragmentBytes: number
}

const MiB = 1024 * 1024

const makeKind = (
  name: string,
  path: Kind["path"],
  contentBytes: number,
  fragments = 0,
  fragmentBytes = 0,
  status = 200
): Kind => ({ name, path, status, contentBytes, fragments, fragmentBytes })

/** All kinds; the first has small prompts, for comparison. */
export const kinds: ReadonlyArray<Kind> = [
  makeKind("content of 100 bytes", "", 100),
  makeKind("content of 4 MiB", "", 4 * MiB),
  makeKind("content of 8 MiB", "", 8 * MiB),
  makeKind("version of 8 MiB", "/versions/1", 8 * MiB),
  makeKind("7 MiB of fragments, resolved", "/resolved", 100, 7, MiB),
  makeKind("30 MiB of fragments, too large", "/resolved", 100, 30, MiB, 422),
  makeKind("16 MiB and fragments, too large", "/resolved", 16 * MiB, 30, MiB, 422)
]

/** How many requests the tenant with large prompts sends at once: within the default limit per minute. */
const largeRequests = 90
const smallPrompts = 10_000
/** The small requests begin this many milliseconds apart. */
const intervalMs = 10

/** A service with a tenant of large prompts and one of small prompts. */
export interface Tenants {
  readonly service: Service
  /** Starts another process of the service with the same database. */
  readonly startAnother: Effect.Effect<Service, never, Scope.Scope>
  /** Runs a statement without a timeout. */
  readonly sql: (text: string, params: ReadonlyArray<string>) => Promise<ReadonlyArray<unknown>>
  readonly large: { readonly key: Key; readonly workspace: string }
  readonly small: { readonly key: Key; readonly ids: ReadonlyArray<string>; next: number }
}

/** The limits are raised only because the small reads of several rounds fall into the same minute. */
const env = { RATE_LIMIT_PER_KEY: "1000000", RATE_LIMIT_PER_PROCESS: "1000000", LOG_LEVEL: "Warn" }

/** Starts a service with both tenants; closing the scope stops it. */
export const twoTenants: Effect.Effect<Tenants, never, Scope.Scope> = Effect.gen(function* () {
  const serviceEnv: Record<string, string> = { ...(yield* postgres.acquire), ...env }
  const start = Effect.acquireRelease(
    Effect.promise(() => startService(serviceEnv)),
    (service) => Effect.promise(() => service.stop())
  )
  const service = yield* start
  const { importArchive } = yield* connectTo(serviceEnv)
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => makeSql(serviceEnv.DATABASE_URL!, { max: 1 })),
    (client) => Effect.promise(() => client.end({ timeout: 5 }))
  )
  const sql: Tenants["sql"] = (text, params) => client.unsafe(text, [...params])
  const tenant = Effect.fnUntraced(function* () {
    const [home, owner] = [workspace(), user()]
    const ownKey = key(home.id, owner)
    const tenant = archive({ workspace: home, users: [owner], api_keys: [ownKey.stored] })
    yield* Effect.promise(() => importArchive(tenant))
    return { key: ownKey, workspace: home.id as string }
  })
  const [large, small] = [yield* tenant(), yield* tenant()]
  const rows = yield* Effect.promise(() =>
    sql(
      `insert into prompts (workspace_id, title, current_content)
        select $1, 'Small ' || i, repeat('Answer briefly. ', 20) from generate_series(1, ${smallPrompts}) i
        returning id`,
      [small.workspace]
    )
  )
  const ids = (rows as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id)
  return { service, startAnother: start, sql, large, small: { key: small.key, ids, next: 0 } }
})

const line = "Answer briefly and to the point."
const makeTextSql = (bytes: number): string =>
  `left(repeat('${line}' || chr(10), ${Math.ceil(bytes / (line.length + 1))}), ${bytes})`

/** Replaces the large tenant's prompts by `largeRequests` prompts of one kind, and returns their ids. */
const fill = async ({ sql, large }: Tenants, kind: Kind): Promise<ReadonlyArray<string>> => {
  await sql("delete from prompts where workspace_id = $1", [large.workspace])
  await sql("delete from fragments where workspace_id = $1", [large.workspace])
  const content = kind.path === "/versions/1" ? 0 : kind.contentBytes
  await sql(
    `insert into prompts (workspace_id, title, current_content) values ($1, 'Large', ${makeTextSql(content)})`,
    [large.workspace]
  )
  // Copying a stored text is cheap: PostgreSQL does not compress it again.
  await sql(
    `insert into prompts (workspace_id, title, current_content)
      select workspace_id, title, current_content from prompts, generate_series(2, ${largeRequests})
      where workspace_id = $1`,
    [large.workspace]
  )
  const rows = await sql("select id from prompts where workspace_id = $1", [large.workspace])
  if (kind.path === "/versions/1")
    await sql(
      `insert into prompt_versions (prompt_id, version_number, content)
        select id, 1, ${makeTextSql(kind.contentBytes)} from prompts where workspace_id = $1`,
      [large.workspace]
    )
  if (kind.fragments > 0)
    await sql(
      `with inserted as (
        insert into fragments (workspace_id, content)
          select $1, ${makeTextSql(kind.fragmentBytes)} from generate_series(1, ${kind.fragments}) returning id
      )
      insert into prompt_fragments (prompt_id, fragment_id, position)
        select p.id, inserted.id, 1 from prompts p, inserted where p.workspace_id = $1`,
      [large.workspace]
    )
  return (rows as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id)
}

/** Sends one request for each target, all at once from another thread, and counts the responses by status. */
const sendAll = async (
  port: number,
  targets: ReadonlyArray<string>,
  key: string
): Promise<Readonly<Record<string, number>>> => {
  const worker = new Worker(new URL("../../bench/generator.ts", import.meta.url))
  const result = await new Promise<LoadResult>((resolve, reject) => {
    worker.once("message", resolve).once("error", reject)
    worker.postMessage({
      port,
      seconds: 10,
      streams: [
        {
          connections: targets.length,
          targets,
          order: "in turn",
          key,
          expect: 200,
          maxRequests: targets.length
        }
      ]
    })
  })
  await worker.terminate()
  const { statuses, faults } = result.streams[0]!
  return faults === 0 ? statuses : { ...statuses, fault: faults }
}

const readResidentMiB = (pid: number): number =>
  Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))![1]) / 1024

/** Sends small cold reads at a fixed rate until `until` resolves. */
const readSmall = async (
  { service, small }: Tenants,
  until: Promise<unknown>
): Promise<{
  readonly times: ReadonlyArray<number>
  readonly statuses: Readonly<Record<string, number>>
}> => {
  const agent = new Agent({ keepAlive: true })
  const times: Array<number> = []
  const statuses: Record<string, number> = {}
  const read = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const started = performance.now()
      const path = `/api/v1/prompts/${small.ids[small.next++ % small.ids.length]}`
      const headers = { authorization: `Bearer ${small.key.plaintext}` }
      get({ port: service.port, agent, path, headers }, (response) => {
        response.resume().on("end", () => {
          times.push(performance.now() - started)
          statuses[response.statusCode!] = (statuses[response.statusCode!] ?? 0) + 1
          resolve()
        })
      }).on("error", reject)
    })
  let running = true
  const stopped = until.then(() => (running = false))
  const reads: Array<Promise<void>> = []
  while (running) {
    reads.push(read())
    await setTimeout(intervalMs)
  }
  await stopped
  await Promise.all(reads)
  agent.destroy()
  return { times, statuses }
}

/** The effect of one burst of large requests on the small requests sent at the same time. */
export interface Neighbors {
  /** The latencies of the small requests in milliseconds, without and with the large requests. */
  readonly alone: ReadonlyArray<number>
  readonly meanwhile: ReadonlyArray<number>
  /** The number of responses by status. */
  readonly small: Readonly<Record<string, number>>
  readonly large: Readonly<Record<string, number>>
  /** How many MiB the service's resident memory grew during the burst. */
  readonly growth: number
  /** How long the burst took, in milliseconds. */
  readonly duration: number
}

/**
 * Sends a burst of large requests of one kind to a process of the service, by default the one that also serves the
 * small reads, and measures the small reads before and during it.
 */
export const measureNeighbors = async (
  tenants: Tenants,
  kind: Kind,
  target: Service = tenants.service
): Promise<Neighbors> => {
  const { large } = tenants
  const targets = (await fill(tenants, kind)).map((id) => `/api/v1/prompts/${id}${kind.path}`)
  const pid = target.process.pid!
  await readSmall(tenants, setTimeout(500))
  const alone = await readSmall(tenants, setTimeout(2_000))
  const before = readResidentMiB(pid)
  let peak = before
  const watch = setInterval(() => (peak = Math.max(peak, readResidentMiB(pid))), 20)
  const started = performance.now()
  let duration = 0
  const burst = sendAll(target.port, targets, large.key.plaintext).then((statuses) => {
    duration = performance.now() - started
    return statuses
  })
  const meanwhile = await readSmall(tenants, burst)
  clearInterval(watch)
  const small = { ...alone.statuses }
  for (const [status, count] of Object.entries(meanwhile.statuses))
    small[status] = (small[status] ?? 0) + count
  return {
    alone: alone.times,
    meanwhile: meanwhile.times,
    small,
    large: await burst,
    growth: peak - before,
    duration
  }
}
