import * as Effect from "effect/Effect"
import { sizes } from "../../src/domain/Sizes.ts"
import { makeTenant, prompt } from "../../test/support/archives.ts"
import { connectTo, postgresEnv } from "../../test/support/database/connection.ts"
import { connectClient } from "../../test/support/database/server.ts"
import { runService, startService, unlimited } from "../../test/support/services/startService.ts"

/** A request of the first tenant: POST if the request has a body, or else GET. */
interface LargeRequest {
  readonly path: string
  readonly body?: string
}

/** A kind of content and its requests. Most kinds of content are as large as the database accepts. */
interface Kind {
  readonly name: string
  /** The statements that fill the empty workspace `$1`. */
  readonly fill: ReadonlyArray<string>
  /** Makes a request for a prompt of the workspace. */
  readonly request: (id: string, index: number) => LargeRequest
}

/** The number of concurrent requests. This number is less than the default rate limit of a key. */
export const burstSize = 90

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
/** A JSON object with many members. Each member except `name` takes 11 bytes. */
const json = `(select jsonb_object_agg(to_hex(4096 + n), 1) || '{"name": "value"}'
  from generate_series(1, ${Math.floor(sizes.jsonBytes / 11) - 2}) n)`
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
  (id: string, index: number): LargeRequest => ({ path: `${path}/${id}${suffix}?i=${index}` })
const call =
  (method: string, params: (index: number) => object) =>
  (_: string, index: number): LargeRequest => ({
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
 * The settings of the service. The rate limits are high, because a run reads several kinds in the same minute. The
 * memory options equal the options of the image and of the systemd unit.
 */
const env = {
  NODE_OPTIONS: "--max-semi-space-size=16",
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: "131072",
  ...unlimited,
  LOG_LEVEL: "Warn",
  MCP: "on"
}

/** A service with a tenant whose values are as large as possible, and another tenant with one small prompt. */
export type Neighbors = Effect.Success<typeof runNeighbors>

/** Starts a service with both tenants. Closing the scope stops the service. */
export const runNeighbors = Effect.gen(function* () {
  const serviceEnv: Record<string, string> = { ...(yield* postgresEnv), ...env }
  const service = yield* runService(() => startService(serviceEnv))
  const { importArchive } = yield* connectTo(serviceEnv)
  const client = yield* connectClient(serviceEnv.DATABASE_URL!)
  const [large, small] = [makeTenant(), makeTenant({ prompts: [prompt()] })]
  for (const { archive } of [large, small]) yield* Effect.promise(() => importArchive(archive))
  const sql = (text: string) =>
    Effect.runPromise(client.unsafe<{ readonly id: string }>(text, [large.home.id]))
  const headers = {
    authorization: `Bearer ${large.key.plaintext}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25"
  }
  const send = async ({ path, body }: LargeRequest) => {
    const method = body === undefined ? "GET" : "POST"
    const response = await fetch(service.url + path, { method, headers, body: body ?? null })
    await response.arrayBuffer()
    return response.status
  }
  return {
    service,
    small: { path: `${path}/${small.archive.prompts[0]!.id}`, key: small.key.plaintext },
    /**
     * Replaces the content of the large tenant with content of one kind. Returns a function that sends requests for the
     * content, all at the same time, and counts the responses by status.
     */
    fill: async (kind: Kind) => {
      for (const table of ["prompts", "fragments"]) await sql(`delete from ${table} where workspace_id = $1`)
      for (const text of kind.fill) await sql(text)
      const rows = await sql("select id from prompts where workspace_id = $1")
      return async (count: number): Promise<Readonly<Record<string, number>>> => {
        const requests = Array.from({ length: count }, (_, n) => kind.request(rows[n % rows.length]!.id, n))
        const statuses = Map.groupBy(await Promise.all(requests.map(send)), String)
        return Object.fromEntries([...statuses].map(([status, { length }]) => [status, length]))
      }
    }
  }
})
