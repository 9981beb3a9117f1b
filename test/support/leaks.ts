import { createHash } from "node:crypto"
import { subscribe } from "node:diagnostics_channel"
import { METHODS } from "node:http"
import { PromptsGroup } from "../../src/adapters/inbound/contract/Api.ts"
import { migrations } from "../../src/adapters/outbound/postgres/schema/Migrations.ts"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import demo from "../../src/demo/workspace.json" with { type: "json" }

/** True under Vitest. Benchmarks also load this module, but send too many requests to record. */
const isTest = process.env.VITEST !== undefined

/**
 * Texts that must not occur in the logs, metrics and spans of a service, each with its kind. They are collected from
 * the requests that a test file sends and from the archives that the test file imports.
 */
const secrets = new Map<string, string>()
/** Request ids that callers chose, which the service may log. */
const requestIds = new Set<string>()
const recordedLines = new Set<string>()

/** Texts that the service itself writes and that a test may also send: routes, methods, messages and SQL. */
const ownTexts = [
  ...['route="/api/v1/prompts/:id/resolved"', 'route="/api/v1/prompts/:id/versions/:version"'],
  ...["GET /healthz", "/readyz"],
  ...["/openapi.json", "/metrics", "Resolved content is too large", "on http://127.0.0.1", ...METHODS],
  ...Object.values(PromptsGroup.endpoints).map(({ path }) => path),
  ...migrations.flatMap(({ statements }) => statements)
].join("\n")
/** The minimum length of most secrets. A shorter text could occur by chance. */
const minLength = 8

const addSecret = (kind: string, word: string): void => {
  if (word.length >= minLength && !ownTexts.includes(word)) secrets.set(word, kind)
}

/** Adds the lines of a text one by one, because a log may split the text into lines. */
const addText = (kind: string, text: string): void => {
  for (const line of text.split(/[\r\n]+/)) addSecret(kind, line)
}

const addHashes = (text: string): void => {
  for (const encoding of ["hex", "base64", "base64url"] as const)
    addSecret("a hash", createHash("sha256").update(text).digest(encoding).replace(/=+$/, ""))
}

const decode = (text: string): string => new URLSearchParams(`=${text}`).get("") ?? text

const addTarget = (target: string): void => {
  const [, origin = "", path = "", query] = /^([a-z]+:\/\/[^/?]*)?([^?]*)(?:\?(.*))?$/is.exec(target)!
  if (!/\/\/(127\.0\.0\.1|localhost)(:|$)/.test(origin))
    addSecret("an authority", origin.replace(/^.*\/\//, ""))
  // A generated path may begin with a space. Untrimmed, it would be found in "GET /healthz" of a log line.
  addSecret("a path", path.trim())
  for (const segment of path.split("/"))
    for (const word of [segment, segment.toLowerCase()]) addSecret("a path", word)
  if (query === undefined) return
  // A name with its value is recorded even if the pair is short, because no other text looks like the pair.
  for (const part of [query, ...query.split("&")]) if (/...=./.test(part)) secrets.set(part, "a query")
  for (const part of query.split(/[&=]/)) for (const word of [part, decode(part)]) addSecret("a query", word)
}

const addHeader = (name: string, value: string): void => {
  if (/^x-request-id$/i.test(name) && /^(?!.*key_live_)[\w.-]{1,128}$/i.test(value)) requestIds.add(value)
  else if (!/^host$/i.test(name)) addText("a header", value)
  if (/^authorization$/i.test(name)) {
    const token = value.replace(/^\S+\s+/, "")
    addSecret("a token", token)
    for (const text of [value, token]) addHashes(text)
  }
}

/** Records the secrets of a request, or of several pipelined requests. */
export const recordSent = (requests: string): void => {
  if (!isTest) return
  for (const line of requests.split("\r\n")) {
    if (recordedLines.has(line)) continue
    recordedLines.add(line)
    for (const [key, digits] of line.matchAll(/key_live_([0-9a-f]{64})/gi)) {
      addSecret("a key", digits!)
      addHashes(key)
    }
    const [, method, target] = /^(\S*) (.*) HTTP\/\d/.exec(line) ?? []
    const [, name, value] = /^([^:]*):(.*)$/.exec(line) ?? []
    if (target !== undefined) {
      addSecret("a method", method!)
      addTarget(target)
    } else if (value !== undefined) addHeader(name!, value.trim())
    else addSecret("a line", line)
  }
}

/** A request as Node's diagnostics channels report it: `headers` for `fetch`, `getHeaders` for `node:http`. */
interface ClientRequest {
  readonly method: string
  readonly path: string
  readonly headers?: ReadonlyArray<string>
  readonly getHeaders?: () => Readonly<Record<string, unknown>>
}

const toHeaderLines = (request: ClientRequest): ReadonlyArray<string> =>
  request.getHeaders === undefined
    ? request.headers!.flatMap((name, n, all) => (n % 2 === 0 ? [`${name}: ${all[n + 1]}`] : []))
    : Object.entries(request.getHeaders()).map(([name, value]) => `${name}: ${value}`)

// Records the requests that `fetch` and `node:http` send. rawHttp.ts records its own requests.
for (const channel of isTest ? ["undici:request:create", "http.client.request.start"] : [])
  subscribe(channel, (message) => {
    const { request } = message as { readonly request: ClientRequest }
    recordSent([`${request.method} ${request.path} HTTP/1.1`, ...toHeaderLines(request)].join("\r\n"))
  })

/** Records the texts of an archive's prompts, versions and fragments as secrets. */
export const recordImported = ({ prompts, fragments }: Pick<Archive, "prompts" | "fragments">): void => {
  for (const { content } of fragments) addText("prompt text", content)
  const texts = prompts.map(({ title, description, current_content, target_model, intent, ...prompt }) => [
    [title, description, current_content, target_model, intent],
    prompt.fragments.map(({ variable_overrides }) => variable_overrides),
    prompt.versions.map(({ content, change_summary, metadata }) => [content, change_summary, metadata])
  ])
  JSON.stringify(texts, (_, value: unknown) => {
    if (typeof value === "string") addText("prompt text", value)
    return value
  })
}
recordImported(demo as unknown as Archive)

const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** True for fields that contain a time, a random id, or an id that the service logs on purpose. */
const isHarmless = (name: string, value: unknown): boolean =>
  /^(time|traceId|spanId|parentSpanId|\w+UnixNano)$/.test(name) ||
  (name === "request_id" && requestIds.has(String(value))) ||
  (name === "prompt_id" && String(value).split(" ").every(isUuid))

/** Lists the names and texts of a line of JSON, except harmless fields. Returns any other line also unescaped. */
const listLineWords = (line: string): ReadonlyArray<string> => {
  const words: Array<string> = []
  try {
    JSON.parse(line, (name, value: unknown) => {
      if (!isHarmless(name, value)) words.push(name, ...(typeof value === "string" ? [value] : []))
      return value
    })
    return words
  } catch {
    return [line, line.replaceAll(/\\(.)/g, "$1")]
  }
}

/** Patterns that find secrets that no test has sent. */
const suspicious = [
  ["what looks like a key", /key_live_/i],
  ["what looks like a key or a hash", /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i],
  ["what looks like a query", /\/\S*\?[^\s=]*=/],
  ["what keeps a stopped service alive", /Still active after the stop: .*/]
] as const

/** The message that `serve --demo` prints on purpose: it contains the key of the new demo workspace. */
const demoNotice = /^Created the demo workspace, .*\n\n {2}key_live_[0-9a-f]{64}\n\nTry it:\n\n {2}curl .*\n/m

/** The part of a log line that names, on purpose, the prompt whose resolved content is too large. */
const tooLarge = /"ResolvedTooLarge","id":"[0-9a-f-]{36}"/g

/** Returns the secrets in a text that a service wrote: its output, its metrics or its OTLP requests. */
const findLeaks = (output: string): ReadonlyArray<string> => {
  const words = [...new Set(output.replace(demoNotice, "").split("\n").flatMap(listLineWords))]
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

const leaks: Array<string> = []

/** Returns the leaks that were found since the last call, and deletes the leaks from the list. */
export const takeLeaks = (): ReadonlyArray<string> => leaks.splice(0)

/** Searches a text for leaks. If there are any, `expectNoLeaks.ts` makes the test file fail at its end. */
export const searchForLeaks = (output: string): void => {
  if (isTest) leaks.push(...findLeaks(output))
}
