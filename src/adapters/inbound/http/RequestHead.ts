// Reads the head of a request: the route of its target, the token in `Authorization`, the request id, and the framing.
import type { IncomingMessage } from "node:http"
import { keyPrefix } from "../../../domain/ApiKey.ts"
import { operationalPaths, PromptsGroup } from "../contract/Api.ts"
import { requestIdPattern } from "../contract/Headers.ts"
import type { HttpRequest } from "./HttpMessage.ts"

export interface MatchedRoute {
  /** The pattern of the route, such as `/api/v1/prompts/:id`. */
  readonly route: string
  /** The undecoded values of the pattern's parameters, by name. */
  readonly params: Readonly<Record<string, string>>
  /** The undecoded part of the target after the first `?`. */
  readonly query: string
}

/** Matches the scheme and the authority of a request target in absolute form. */
const absoluteFormPattern = /^https?:\/\/[^/?#]*/i

/**
 * The routes with expressions that match their paths. A parameter matches a segment that is not empty and has no
 * percent-encoding, no `;name=value` and no fragment.
 */
const routes = [...Object.values(PromptsGroup.endpoints).map(({ path }) => path), ...operationalPaths].map(
  (route) => ({
    route,
    pattern: new RegExp(`^${route.replaceAll(".", "\\.").replaceAll(/:(\w+)/g, "(?<$1>[^/%;#]+)")}$`)
  })
)

/** Splits a raw request target into its path and its query. The scheme and the authority are left out. */
export const splitTarget = (rawTarget: string): { readonly path: string; readonly query: string } => {
  const target = rawTarget.startsWith("/") ? rawTarget : rawTarget.replace(absoluteFormPattern, "")
  const queryStart = target.indexOf("?")
  return queryStart < 0
    ? { path: target, query: "" }
    : { path: target.slice(0, queryStart), query: target.slice(queryStart + 1) }
}

/**
 * Matches a raw request target against the routes of the API and the operational paths. Returns `undefined` if the path
 * is unknown. Of an absolute-form target, only the path and the query are used. A path must start with the base path.
 * The path is compared byte by byte, without decoding. An additional slash, a different letter case, or any of `%`, `;`
 * and `#` makes it unknown.
 */
export const matchRoute = (rawTarget: string, basePath = ""): MatchedRoute | undefined => {
  const { path, query } = splitTarget(rawTarget)
  if (!path.startsWith(basePath)) return undefined
  for (const { route, pattern } of routes) {
    const found = pattern.exec(path.slice(basePath.length))
    if (found !== null) return { route, params: { ...found.groups }, query }
  }
  return undefined
}

const bearerPattern = /^bearer +([\x21-\x7e]+)$/i

/**
 * Returns the token of an `Authorization` header, or `undefined` if the header is missing or malformed. A header is
 * well-formed if it is exactly one `Bearer <token>`: the scheme in any case, one or more spaces, and a token of visible
 * ASCII characters without a comma.
 */
export const parseBearerToken = (header: string | undefined): string | undefined => {
  const token = header === undefined ? undefined : bearerPattern.exec(header)?.[1]
  return token?.includes(",") ? undefined : token
}

/** Returns the caller's `X-Request-Id`, or a new id if it is invalid or may contain a key, because ids are logged. */
export const chooseRequestId = (header: string | undefined): string =>
  header !== undefined && requestIdPattern.test(header) && !header.includes(keyPrefix)
    ? header
    : crypto.randomUUID()

/**
 * Returns true if a request has exactly one `Host` header, and no transfer coding other than `chunked`. Only an
 * HTTP/1.0 request is also accepted without a `Host` header. The server joins duplicate headers with commas, so a comma
 * in `host` means several headers.
 */
export const hasAcceptableHead = ({ headers, httpVersion }: IncomingMessage): boolean => {
  const { host, "transfer-encoding": framing } = headers
  return (
    (host === undefined ? httpVersion === "1.0" : !host.includes(",")) &&
    (framing === undefined || framing.toLowerCase() === "chunked")
  )
}

/** Returns true if a request has a body that has not been read to its end. */
export const hasUnreadBody = ({ headers, readableEnded }: IncomingMessage): boolean =>
  (headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0") && !readableEnded

/** A longer wait counts as this time, in seconds. */
const maxWaitSeconds = 50

/** Matches the next preference of a `Prefer` header (RFC 7240): its name, and its value as a quoted string or a token. */
const preferencePattern =
  /[\s,]*([\w!#$%&'*+\-.^`|~]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+\-.^`|~]+)))?\s*(?:;(?:[^",]|"(?:[^"\\]|\\.)*")*)?(?:,|$)/gy

/**
 * Returns the seconds for which a request may wait for a change, or `undefined` if it does not wait. Only a conditional
 * GET may wait. The seconds are the value of the first preference `wait`. If this value is 0 or malformed, the
 * preference is ignored.
 */
export const findWaitSeconds = ({ method, headers, startWait }: HttpRequest): number | undefined => {
  const { prefer, "if-none-match": ifNoneMatch } = headers
  if (prefer === undefined || ifNoneMatch === undefined || method !== "GET" || startWait === undefined)
    return undefined
  for (const [, name, quoted, token] of prefer.matchAll(preferencePattern)) {
    if (name?.toLowerCase() !== "wait") continue
    const value = quoted ?? token ?? ""
    const seconds = /^\d+$/.test(value) ? Math.min(Number(value), maxWaitSeconds) : 0
    return seconds === 0 ? undefined : seconds
  }
  return undefined
}
