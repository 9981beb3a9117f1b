import { hash } from "node:crypto"
import type * as Effect from "effect/Effect"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { type ApiError, describeError, encodeErrorEnvelope, type RequestTimeout } from "../contract/Errors.ts"
import { cachingHeaders } from "../contract/Headers.ts"

// Requests, responses and their bodies

/** A request as the transport parsed it. */
export interface HttpRequest {
  readonly method: string
  /** The raw request target, not normalized. */
  readonly target: string
  /** Maps the name of each header, in lower case, to its value. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Reads the body, at most once. The array becomes empty when the response is made or the connection closes. */
  readonly readBody: (limits: BodyLimits) => Effect.Effect<Uint8Array, BodyError>
  /**
   * Lets the response wait for a change, without a time limit of the transport. The transport calls `release` if the
   * wait must end early. Returns the function that the caller calls when the wait has ended, or `undefined` if the
   * response must not wait. `startWait` is absent if the transport cannot wait.
   */
  readonly startWait?: (release: () => void) => (() => void) | undefined
}

/** The number of bytes that a body may have, and the workspace whose share of memory the body uses. */
export interface BodyLimits {
  readonly maxBytes: number
  readonly workspace: WorkspaceId
}

/** Returns true for GET and HEAD, the only methods that this API serves. */
export const isGetOrHead = ({ method }: HttpRequest): boolean => method === "GET" || method === "HEAD"

/** Bytes, or a text with one character (U+0000 to U+00FF) for each byte. The length is always the number of bytes. */
export type Body = Uint8Array | string

/** The maximum size of a body that is a text, in bytes. */
const maxTextBytes = 16 * 1024

/**
 * Encodes a text in UTF-8. A small body is a string. Writing a string together with the headers costs Node a third less
 * than writing two buffers. A cached string also costs the garbage collector less.
 */
export const encodeBody = (text: string): Body => {
  const bytes = Buffer.byteLength(text)
  if (bytes > maxTextBytes) return Buffer.from(text)
  return bytes === text.length ? text : Buffer.from(text).toString("latin1")
}

/** Converts a body to bytes. */
export const toBytes = (body: Body): Uint8Array<ArrayBuffer> =>
  typeof body === "string" ? Buffer.from(body, "latin1") : (body as Uint8Array<ArrayBuffer>)

/** A response for the transport to write. The transport omits the body of a response to HEAD. */
export interface HttpResponse {
  readonly status: number
  /** Alternating header names and values, as `writeHead` of `node:http` takes them. */
  readonly headers: ReadonlyArray<string>
  readonly body: Body
  /** The workspace whose share of memory the body uses until the client has received the body. */
  readonly workspace?: WorkspaceId | undefined
}

/**
 * Shares a limited number of bytes among the workspaces, and counts how many bytes each workspace holds. A workspace
 * may hold at most half of the bytes that the other workspaces leave free, so that one workspace cannot use up all
 * bytes. `undefined` stands for the requests without a workspace.
 */
export class WorkspaceShares {
  readonly #maxBytes: number
  readonly #bytesOf = new Map<WorkspaceId | undefined, number>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns true if the workspace may hold this many additional bytes. */
  hasRoom(workspace: WorkspaceId | undefined, bytes: number): boolean {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    return held <= this.#maxBytes - this.#bytes - bytes
  }

  /** Adds `bytes` to the number of bytes that the workspace holds. A negative number releases bytes. */
  add(workspace: WorkspaceId | undefined, bytes: number): void {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    this.#bytes += bytes
    if (held === 0) this.#bytesOf.delete(workspace)
    else this.#bytesOf.set(workspace, held)
  }
}

/** The body of a request is larger than the endpoint allows. */
export const BodyTooLarge = { _tag: "BodyTooLarge" } as const
/** The body is too large, is not complete in time, or exceeds the workspace's share of memory for bodies. */
export type BodyError = typeof BodyTooLarge | typeof RequestTimeout | Unavailable

// Headers

/** Maps the name of each header, in lower case, to its value. */
type HeaderFields = Readonly<Record<string, string>>

/** Converts headers to alternating names and values. */
export const toRawHeaders = (headers: HeaderFields): ReadonlyArray<string> => Object.entries(headers).flat()

export const toHeaderPairs = ({ headers }: HttpResponse): Array<[string, string]> =>
  headers.flatMap((name, index): Array<[string, string]> => {
    const value = headers[index + 1]
    return index % 2 === 0 && value !== undefined ? [[name, value]] : []
  })

export const makeEntityHeaders = (body: Body, contentType: string) => ({
  "content-type": contentType,
  "content-length": String(body.length)
})

/** Adds the headers that every response has: the request id and `nosniff`. */
export const withCommonHeaders = (
  { status, headers, body, workspace }: HttpResponse,
  requestId: string
): HttpResponse => ({
  status,
  headers: ["x-request-id", requestId, "x-content-type-options", "nosniff", ...headers],
  body,
  workspace
})

// Representations of resources and documents

/** The two responses to requests for a resource: a 200 and a 304. */
export interface Representation {
  readonly etag: string
  /** The response with the status 200. */
  readonly full: HttpResponse
  /** The headers of the 304, as alternating names and values: the headers of the 200 that do not describe the body. */
  readonly notModifiedHeaders: ReadonlyArray<string>
}

/** The body of a successful response, its ETag, and the value of its `Prompt-Version` header, if any. */
export interface BodyWithEtag {
  readonly body: Body
  readonly etag: string
  /** The `current_version` of the prompt, read in the same snapshot as the body. */
  readonly promptVersion?: number | undefined
}

/** Returns a strong ETag of bytes, or of a text in UTF-8. */
const computeEtag = (content: Uint8Array | string): string => `"${hash("sha256", content, "base64url")}"`

/** Returns JSON as an encoded body, and a strong ETag of the body's bytes. */
export const encodeWithEtag = (json: string): BodyWithEtag => {
  const body = encodeBody(json)
  // `hash` encodes a string in UTF-8. A string body is already encoded, so `hash` gets the JSON text instead.
  return { body, etag: computeEtag(typeof body === "string" ? json : body) }
}

/**
 * Returns the representation of a body. The 200 and the 304 both have the headers in `caching`. The 200 also has
 * `entityHeaders`, and counts against the memory of `workspace`.
 */
const toRepresentation = (
  { body, etag }: BodyWithEtag,
  entityHeaders: HeaderFields,
  caching: ReadonlyArray<string>,
  workspace?: WorkspaceId
): Representation => {
  const notModifiedHeaders = [...caching, "etag", etag]
  return {
    etag,
    full: { status: 200, headers: [...toRawHeaders(entityHeaders), ...notModifiedHeaders], body, workspace },
    notModifiedHeaders
  }
}

const rawCachingHeaders = toRawHeaders(cachingHeaders)

/** Returns the representation of a resource of the API. */
export const representResource = (content: BodyWithEtag, workspace: WorkspaceId): Representation => {
  const { body, promptVersion } = content
  const caching =
    promptVersion === undefined
      ? rawCachingHeaders
      : [...rawCachingHeaders, "prompt-version", String(promptVersion)]
  return toRepresentation(content, makeEntityHeaders(body, "application/json"), caching, workspace)
}

/** Compares two representations of a resource by their headers, which contain the ETag and the version. */
export const isSameRepresentation = (a: Representation, b: Representation): boolean =>
  a.full.headers.every((text, index) => text === b.full.headers[index])

/** Returns the representation of a document that does not change while the process runs, such as `/docs`. */
export const representDocument = (
  text: string,
  contentType: string,
  headers: HeaderFields = {}
): Representation => {
  const body = Buffer.from(text)
  const caching = toRawHeaders({ "cache-control": "no-cache", ...headers })
  const content = { body, etag: computeEtag(body) }
  return toRepresentation(content, makeEntityHeaders(body, contentType), caching)
}

const entityTag = /(?:W\/)?("[^"]*")/g

/**
 * Returns true if an `If-None-Match` header is `*` or lists the current ETag. Ignores text that is not an entity tag.
 * The comparison is weak, because a proxy that compresses a response makes the ETag weak.
 */
const matchesEtag = (ifNoneMatch: string, etag: string): boolean => {
  // Most clients send exactly the ETag that they received.
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") return true
  for (const [, opaqueTag] of ifNoneMatch.matchAll(entityTag)) if (opaqueTag === etag) return true
  return false
}

/** Returns the 304 if the request's `If-None-Match` matches, otherwise the 200. */
export const respondConditionally = (
  { headers }: HttpRequest,
  { etag, full, notModifiedHeaders }: Representation
): HttpResponse => {
  const ifNoneMatch = headers["if-none-match"]
  return ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)
    ? { status: 304, headers: notModifiedHeaders, body: "" }
    : full
}

// Responses to errors and during outages

/** Returns the response to an error, without the common headers. */
export const toErrorResponse = (error: ApiError): HttpResponse => {
  const description = describeError(error)
  const body = encodeBody(encodeErrorEnvelope(description))
  return {
    status: description.status,
    headers: toRawHeaders({ ...description.headers, ...makeEntityHeaders(body, "application/json") }),
    body
  }
}

/** Returns the response with `Cache-Control: no-store`, so that no cache stores the response. */
export const forbidStoring = (response: HttpResponse): HttpResponse => {
  const headers = [...response.headers]
  headers[headers.indexOf("cache-control") + 1] = "no-store"
  return { ...response, headers }
}

/**
 * The value of `Cache-Status` (RFC 9211) in an outage. The value names this service and the reason for the cache hit.
 */
const outageCacheStatus = "prompt-retrieval; hit; detail=database-unavailable"

/**
 * Converts a cached 200 or 304 to the response during an outage of the database. Other caches must not store this
 * response, because other caches could serve the response for longer than this service does. The response keeps its
 * ETag, so that callers can still make conditional requests.
 *
 * @param ageMs the time since the response was last known to be current, in milliseconds; the header `Age` contains
 * this time in seconds, rounded up
 */
export const toOutageResponse = (response: HttpResponse, ageMs: number): HttpResponse => {
  const { headers, ...others } = forbidStoring(response)
  const age = String(Math.ceil(ageMs / 1_000))
  return { ...others, headers: [...headers, "age", age, "cache-status", outageCacheStatus] }
}
