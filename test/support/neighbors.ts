import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent } from "node:http"
import { setTimeout } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import { sizes } from "../../src/domain/Sizes.ts"
import { makeTenant } from "./archives.ts"
import type { Burst, BurstRequest } from "./burst.ts"
import { type Reply, read } from "./clients/read.ts"
import { connectTo, postgresEnv } from "./database.ts"
import { connectClient } from "./postgres.ts"
import { runService, startService, unlimited } from "./service.ts"

/** A kind of content, in most kinds as large as the database accepts, and the requests that read the content. */
interface Kind {
  readonly name: string
  /** The statements that fill the empty workspace `$1`. */
  readonly fill: ReadonlyArray<string>
  /** Makes a request for a prompt of the workspace. */
  readonly request: (id: string, index: number) => BurstRequest
}

/** The number of requests that are sent at the same time. It is less than the default limit per minute. */
const burstSize = 90
const smallPrompts = 2_000
/** The tenant with small prompts sends a cached and an uncached read at this interval, in milliseconds. */
const intervalMs = 10

const fillPrompts = (columns: Readonly<Record<string, string>>, count = burstSize): string =>
  `insert into prompts (workspace_id, title, ${Object.keys(columns).join()})
    select $1, 'Prompt ' || i, ${Object.values(columns).join()} from generate_series(1, ${count}) i`
const ofEachPrompt = (table: string, columns: Readonly<Record<string, string>>, from = ""): string =>
  `insert into ${table} (prompt_id, ${Object.keys(columns).join()})
    select p.id, ${Object.values(columns).join()} from prompts p ${from} where p.workspace_id = $1`

const content = `repeat('Answer briefly. ', ${sizes.contentBytes / 16})`
const controls = `repeat(chr(1), ${sizes.contentBytes})`
const summary = `repeat(chr(1), ${sizes.summaryBytes})`
const slots = `repeat(rpad('{{name}}', ${Math.floor(sizes.contentBytes / sizes.contentSlots)}, 'x'), ${sizes.contentSlots})`
/** A JSON object with many members. */
const json = (() => {
  let text = '{"name": "value"'
  for (let i = 0; text.length < sizes.jsonBytes - 20; i++) text += `, "${i.toString(36)}": 1`
  return `'${text}}'::jsonb`
})()
const fragment = (text: string) => `insert into fragments (workspace_id, content) values ($1, ${text})`
const bind = (overrides: string, count: number) =>
  ofEachPrompt(
    "prompt_fragments",
    { fragment_id: "f.id", variable_overrides: overrides },
    `cross join generate_series(1, ${count}) join fragments f on f.workspace_id = p.workspace_id`
  )

const path = "/api/v1/prompts"
const readEach =
  (suffix: string) =>
  (id: string, index: number): BurstRequest => ({ path: `${path}/${id}${suffix}?i=${index}` })
const call =
  (method: string, params: (index: number) => object) =>
  (_: string, index: number): BurstRequest => ({
    path: "/mcp",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: params(index) })
  })
const promptName = (index: number) => ({ name: `prompt-${(index % burstSize) + 1}` })

/** The largest number of slots that MCP accepts in a prompt. */
const mcpSlots = 1_000
const mcpContent = `(select string_agg('{{argument ' || n || '}}', repeat('x', 1000)) from generate_series(1, ${mcpSlots}) n)`
const mcpArguments = Object.fromEntries(
  Array.from({ length: mcpSlots }, (_, index) => [`argument ${index + 1}`, "value"])
)

/** All kinds. The first kind has small prompts, for comparison. */
export const kinds: ReadonlyArray<Kind> = [
  {
    name: "small prompts",
    fill: [fillPrompts({ current_content: "'Answer briefly.'" })],
    request: readEach("")
  },
  { name: "content of escapes", fill: [fillPrompts({ current_content: controls })], request: readEach("") },
  {
    name: "content, resolved",
    fill: [fillPrompts({ current_content: content })],
    request: readEach("/resolved")
  },
  {
    name: "version with metadata",
    fill: [
      fillPrompts({ current_content: "''" }),
      ofEachPrompt("prompt_versions", { content, change_summary: summary, metadata: json })
    ],
    request: readEach("/versions/1")
  },
  {
    name: "page of descriptions",
    fill: [fillPrompts({ description: summary }, 100)],
    request: (_, index) => ({ path: `${path}?per_page=100&i=${index}` })
  },
  {
    name: "slots",
    fill: [fillPrompts({ current_content: "''" }), fragment(slots), bind(`'{"name": "text"}'`, 1)],
    request: readEach("/resolved")
  },
  {
    name: "overrides",
    fill: [
      fillPrompts({ current_content: "''" }, 10),
      fragment("'{{name}}'"),
      bind(json, sizes.sourceBytes / sizes.jsonBytes - 1)
    ],
    request: readEach("/resolved")
  },
  {
    name: "fragments, too large",
    fill: [fillPrompts({ current_content: content }), fragment(content), bind("'{}'", sizes.promptFragments)],
    request: readEach("/resolved")
  },
  {
    name: "MCP: list as a tool",
    fill: [fillPrompts({ current_content: mcpContent, description: summary }, 100)],
    request: call("tools/call", () => ({ name: "list_prompts", arguments: {} }))
  },
  {
    name: "MCP: get with arguments",
    fill: [fillPrompts({ current_content: mcpContent })],
    request: call("prompts/get", (index) => ({ ...promptName(index), arguments: mcpArguments }))
  }
]

/**
 * The settings of the service. The rate limits are raised because the test reads several kinds in the same minute. The
 * memory options are equal to those of the image and of the systemd unit.
 */
const env = {
  NODE_OPTIONS: "--max-semi-space-size=16",
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: "131072",
  ...unlimited,
  LOG_LEVEL: "Warn",
  MCP: "on"
}

/** A service with a tenant whose values are as large as possible, and another tenant with small prompts. */
export type Tenants = Effect.Success<typeof twoTenants>

/** Starts a service with both tenants. Closing the scope stops the service. */
export const twoTenants = Effect.gen(function* () {
  const serviceEnv: Record<string, string> = { ...(yield* postgresEnv), ...env }
  const service = yield* runService(() => startService(serviceEnv))
  const { importArchive } = yield* connectTo(serviceEnv)
  const client = yield* connectClient(serviceEnv.DATABASE_URL!)
  const sql = <Row extends object>(text: string, params: ReadonlyArray<string>) =>
    Effect.runPromise(client.unsafe<Row>(text, params))
  const [large, small] = [makeTenant(), makeTenant()]
  for (const { archive } of [large, small]) yield* Effect.promise(() => importArchive(archive))
  const rows = yield* Effect.promise(() =>
    sql<{ readonly id: string }>(
      `insert into prompts (workspace_id, title, current_content)
        select $1, 'Small ' || i, repeat('Answer briefly. ', 20) from generate_series(1, ${smallPrompts}) i
        returning id`,
      [small.home.id]
    )
  )
  return { service, sql, large, small: { key: small.key, ids: rows.map(({ id }) => id), next: 0 } }
})

/** Replaces the content of the large tenant with content of one kind, and returns the requests of a burst. */
const prepare = async ({ sql, large }: Tenants, kind: Kind): Promise<ReadonlyArray<BurstRequest>> => {
  for (const table of ["prompts", "fragments", "tags"])
    await sql(`delete from ${table} where workspace_id = $1`, [large.home.id])
  for (const text of kind.fill) await sql(text, [large.home.id])
  const rows = await sql<{ readonly id: string }>("select id from prompts where workspace_id = $1", [
    large.home.id
  ])
  return Array.from({ length: burstSize }, (_, index) => kind.request(rows[index % rows.length]!.id, index))
}

const countEach = (statuses: ReadonlyArray<string | number>): Readonly<Record<string, number>> =>
  Object.fromEntries([...Map.groupBy(statuses, String)].map(([status, { length }]) => [status, length]))

/** Sends a burst from another thread, and counts the responses by status. */
const sendBurst = async (burst: Burst) => {
  const worker = new Worker(new URL("./burst.ts", import.meta.url), { workerData: burst })
  const [statuses] = await once(worker, "message")
  await worker.terminate()
  return countEach(statuses)
}

export const readResidentMiB = (pid: number): number =>
  Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))![1]) / 1024

/** Sends cached and uncached reads of the small tenant until `until` resolves. */
const readSmall = async ({ service, small }: Tenants, until: Promise<unknown>) => {
  const agent = new Agent({ keepAlive: true })
  const [first, ...others] = small.ids
  const readPrompt = (id: string) => read(`${service.url}${path}/${id}`, small.key.plaintext, {}, agent)
  const sent: Record<"cached" | "uncached", Array<Promise<Reply>>> = { cached: [], uncached: [] }
  let running = true
  const stopped = until.then(() => (running = false))
  while (running) {
    sent.cached.push(readPrompt(first!))
    sent.uncached.push(readPrompt(others[small.next++ % others.length]!))
    await setTimeout(intervalMs)
  }
  await stopped
  const [cached, uncached] = [await Promise.all(sent.cached), await Promise.all(sent.uncached)]
  agent.destroy()
  const getDuration = ({ startedAt, endedAt }: Reply): number => endedAt - startedAt
  return {
    /** The latencies of the reads, in milliseconds. */
    cached: cached.map(getDuration),
    uncached: uncached.map(getDuration),
    statuses: countEach([...cached, ...uncached].map(({ status }) => status))
  }
}

/**
 * Sends a burst of one kind. Measures the reads of the small tenant before the burst (`alone`) and during the burst
 * (`meanwhile`). Also returns the statuses of the burst, the statuses of two large requests after the burst, and the
 * greatest resident memory of the service, in MiB.
 */
export const measureNeighbors = async (tenants: Tenants, kind: Kind) => {
  const { large, service } = tenants
  const requests = await prepare(tenants, kind)
  const pid = service.process.pid!
  const alone = await readSmall(tenants, setTimeout(1_000))
  let peak = 0
  const watch = setInterval(() => (peak = Math.max(peak, readResidentMiB(pid))), 20)
  const target = { port: service.port, key: large.key.plaintext }
  const burst = sendBurst({ ...target, requests })
  const meanwhile = await readSmall(tenants, burst)
  clearInterval(watch)
  const afterwards = await sendBurst({ ...target, requests: requests.slice(0, 2) })
  return { alone, meanwhile, large: await burst, afterwards, peak }
}
