import { createHash } from "node:crypto"
import { subscribe } from "node:diagnostics_channel"
import { METHODS } from "node:http"
import demo from "../../src/adapters/cli/demo.json" with { type: "json" }
import { migrations } from "../../src/adapters/postgres/Migrations.ts"
import type { Archive } from "../../src/application/Archive.ts"

/** Benchmarks use some of what tests use, and send more than can be remembered. */
const isTest = process.env.VITEST !== undefined

/**
 * What must not turn up in anything that a service says of itself (DESIGN.md section 8), collected while a test file
 * runs: what was sent and what was imported.
 */
const secrets = new Map<string, string>()
/** Request ids that callers chose, which may be logged. */
const requestIds = new Set<string>()
const seen = new Set<string>()

/** What a service says of itself, which a test may send too: routes, its own SQL. */
const said = [
  ...["/api/v1/prompts/:id/resolved", "/api/v1/prompts/:id/versions/:version", "GET /healthz", "/readyz"],
  ...["/openapi.json", "/metrics", "Resolved content is too large", "on http://127.0.0.1", ...METHODS],
  ...migrations.flatMap(({ statements }) => statements)
].join("\n")
/** Anything shorter could turn up by chance. */
const shortest = 8

const keep = (kind: string, word: string): void => {
  if (word.length >= shortest && !said.includes(word)) secrets.set(word, kind)
}

/** A text may be logged with its lines apart. */
const keepText = (kind: string, text: string): void => {
  for (const line of text.split(/[\r\n]+/)) keep(kind, line)
}

const keepHashes = (text: string): void => {
  for (const encoding of ["hex", "base64", "base64url"] as const)
    keep("a hash", createHash("sha256").update(text).digest(encoding).replace(/=+$/, ""))
}

const decoded = (text: string): string => new URLSearchParams(`=${text}`).get("") ?? text

const keepTarget = (target: string): void => {
  const [, origin = "", path = "", query] = /^([a-z]+:\/\/[^/?]*)?([^?]*)(?:\?(.*))?$/is.exec(target)!
  if (!/\/\/(127\.0\.0\.1|localhost)(:|$)/.test(origin)) keep("an authority", origin.replace(/^.*\/\//, ""))
  // A generated method may end with a space before the path of a route, which spans and logs name.
  keep("a path", path.trim())
  for (const segment of path.split("/"))
    for (const word of [segment, segment.toLowerCase()]) keep("a path", word)
  if (query === undefined) return
  // A pair, though short, is nothing that is said otherwise.
  for (const part of [query, ...query.split("&")]) if (/...=./.test(part)) secrets.set(part, "a query")
  for (const part of query.split(/[&=]/)) for (const word of [part, decoded(part)]) keep("a query", word)
}

const keepHeader = (name: string, value: string): void => {
  if (/^x-request-id$/i.test(name) && /^(?!.*key_live_)[\w.-]{1,128}$/i.test(value)) requestIds.add(value)
  else if (!/^host$/i.test(name)) keepText("a header", value)
  if (/^authorization$/i.test(name)) {
    const token = value.replace(/^\S+\s+/, "")
    keep("a token", token)
    for (const text of [value, token]) keepHashes(text)
  }
}

/** Remembers what of a request, or of several in a row, must not turn up. */
export const sent = (requests: string): void => {
  if (!isTest) return
  for (const line of requests.split("\r\n")) {
    if (seen.has(line)) continue
    seen.add(line)
    for (const [key, digits] of line.matchAll(/key_live_([0-9a-f]{64})/gi)) {
      keep("a key", digits!)
      keepHashes(key)
    }
    const [, method, target] = /^(\S*) (.*) HTTP\/\d/.exec(line) ?? []
    const [, name, value] = /^([^:]*):(.*)$/.exec(line) ?? []
    if (target !== undefined) {
      keep("a method", method!)
      keepTarget(target)
    } else if (value !== undefined) keepHeader(name!, value.trim())
    else keep("a line", line)
  }
}

/** A request as Node's own clients tell of it. */
interface ClientRequest {
  readonly method: string
  readonly path: string
  readonly headers?: ReadonlyArray<string>
  readonly getHeaders?: () => Readonly<Record<string, unknown>>
}

const linesOf = (request: ClientRequest): ReadonlyArray<string> =>
  request.getHeaders === undefined
    ? request.headers!.flatMap((name, n, all) => (n % 2 === 0 ? [`${name}: ${all[n + 1]}`] : []))
    : Object.entries(request.getHeaders()).map(([name, value]) => `${name}: ${value}`)

// What tests send with `fetch` and with `node:http`; bytes of their own pass through rawHttp.ts.
for (const channel of isTest ? ["undici:request:create", "http.client.request.start"] : [])
  subscribe(channel, (message) => {
    const { request } = message as { readonly request: ClientRequest }
    sent([`${request.method} ${request.path} HTTP/1.1`, ...linesOf(request)].join("\r\n"))
  })

const textsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(textsIn)
      : []

/** Remembers the texts of a workspace's prompts, versions and fragments. */
export const imported = ({ prompts, fragments }: Pick<Archive, "prompts" | "fragments">): void => {
  for (const { content } of fragments) keepText("prompt text", content)
  for (const { title, description, current_content, target_model, intent, fragments, versions } of prompts) {
    const texts = [title, description, current_content, target_model, intent]
    const overrides = fragments.map(({ variable_overrides }) => variable_overrides)
    const ofVersions = versions.map(({ content, change_summary, metadata }) => [
      content,
      change_summary,
      metadata
    ])
    for (const text of textsIn([texts, overrides, ofVersions])) keepText("prompt text", text)
  }
}
imported(demo as unknown as Archive)

const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** Names of what is random, a time, or said on purpose. */
const isOwn = (name: string, value: unknown): boolean =>
  /^(timestamp|traceId|spanId|parentSpanId|\w+UnixNano)$/.test(name) ||
  (name === "request_id" && requestIds.has(String(value))) ||
  (name === "prompt_id" && isUuid(String(value)))

/** The names and texts in a value that came as JSON, but for what is its own. */
const wordsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : Array.isArray(value)
      ? value.flatMap(wordsOf)
      : typeof value === "object" && value !== null
        ? Object.entries(value).flatMap(([name, of]) => (isOwn(name, of) ? [] : [name, ...wordsOf(of)]))
        : []

/** A line of JSON (a log line, what OTLP sent) by what is in it, any other (of metrics) as it is and unescaped. */
const wordsOfLine = (line: string): ReadonlyArray<string> => {
  try {
    return wordsOf(JSON.parse(line))
  } catch {
    return [line, line.replaceAll(/\\(.)/g, "$1")]
  }
}

/** What looks like something that must not be said, whoever sent it. */
const suspicious = [
  ["what looks like a key", /key_live_/i],
  ["what looks like a key or a hash", /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i],
  ["what looks like a query", /\/\S*\?[^\s=]*=/]
] as const

/** The demo's key, which a start on a new database prints once on purpose (DESIGN.md section 8). */
const demoNotice = /^A demo workspace was made, .*\n\n {2}key_live_[0-9a-f]{64}\n\nTry it:\n\n {2}curl .*\n/m

/** The prompt whose content is too large is named on purpose (DESIGN.md section 5). */
const tooLarge = /"ResolvedTooLarge","id":"[0-9a-f-]{36}"/g

/** What has leaked into what a service said: its output, its metrics, what it sent to a collector. */
export const leaksIn = (output: string): ReadonlyArray<string> => {
  const words = [...new Set(output.replace(demoNotice, "").split("\n").flatMap(wordsOfLine))]
  const ids = words.filter(isUuid)
  const text = words
    .filter((word) => !isUuid(word))
    .join("\n")
    .replaceAll(tooLarge, "")
  const lower = text.toLowerCase()
  const around = (at: number) => `…${text.slice(Math.max(0, at - 200), at + 200)}…`
  return [
    ...ids.filter((id) => secrets.has(id)).map((id) => `${secrets.get(id)}: ${id}`),
    ...[...secrets].flatMap(([word, kind]) => {
      const at = Math.max(text.indexOf(word), lower.indexOf(word))
      return at < 0 ? [] : [`${kind}, ${word}: ${around(at)}`]
    }),
    ...suspicious.flatMap(([kind, pattern]) => {
      const at = text.search(pattern)
      return at < 0 ? [] : [`${kind}: ${around(at)}`]
    })
  ]
}

const found: Array<string> = []

/** What was found since this was last asked. */
export const takeLeaks = (): ReadonlyArray<string> => found.splice(0)

/** Searches what a service said. A test file fails at its end, when all is cleaned up, if anything was found. */
export const searchForLeaks = (output: string): void => {
  if (isTest) found.push(...leaksIn(output))
}

if (isTest) {
  const { afterAll, expect } = await import("vitest")
  afterAll(() => expect(takeLeaks()).toEqual([]))
}
