import { hash } from "node:crypto"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import {
  makeEntityHeaders,
  type HeaderFields,
  type HttpRequest,
  type HttpResponse,
  toRawHeaders
} from "../../contract/HttpMessage.ts"

/** How long a shared cache may serve a response, in seconds (specification 8). */
export const sharedMaxAgeSeconds = 30

/**
 * How many seconds after `sharedMaxAgeSeconds` a shared cache may still serve a response while it fetches a new
 * response (specification 8).
 */
export const staleWhileRevalidateSeconds = 300

/** The caching headers of every successful response of the API, besides its ETag (specification 8). */
export const cachingHeaders = {
  "cache-control": `public, s-maxage=${sharedMaxAgeSeconds}, stale-while-revalidate=${staleWhileRevalidateSeconds}`,
  vary: "Authorization"
} as const

/** The largest body of a response that is cached, in bytes. */
export const maxCachedBytes = 1024 * 1024

/** The two responses with which a resource is served: a 200 and a 304. */
export interface Representation {
  readonly etag: string
  /** The response with the status 200. */
  readonly full: HttpResponse
  /** The headers of the 304, as names and values: the headers of the 200 that do not describe the body. */
  readonly notModifiedHeaders: ReadonlyArray<string>
}

const noBody = new Uint8Array()

/** Returns a strong ETag of a body's bytes. */
export const computeEtag = (body: Uint8Array): string => `"${hash("sha256", body, "base64url")}"`

/** The body of a successful response, its ETag, and the value of its `Prompt-Version` header, if any. */
export interface BodyWithEtag {
  readonly body: Uint8Array<ArrayBuffer>
  readonly etag: string
  /** The `current_version` of the prompt, read in the same snapshot as the body. */
  readonly promptVersion?: number | undefined
}

/**
 * Encodes JSON in separate memory. `Buffer.from` would put a small body into a shared pool, and a cached body would
 * keep the whole pool in memory.
 */
export const encodeBody = (json: string): BodyWithEtag => {
  const body = Buffer.allocUnsafeSlow(Buffer.byteLength(json))
  body.write(json)
  return { body, etag: computeEtag(body) }
}

/**
 * Returns the representation of a body. The 200 and the 304 both have the headers in `caching`. The 200 also has the
 * fields in `memory`.
 */
export const toRepresentation = (
  body: Uint8Array,
  entityHeaders: HeaderFields,
  caching: ReadonlyArray<string>,
  memory: Pick<HttpResponse, "isPermanent" | "isFreedWhenSent" | "workspace">,
  etag: string = computeEtag(body)
): Representation => {
  const notModifiedHeaders = [...caching, "etag", etag]
  return {
    etag,
    full: { status: 200, headers: [...toRawHeaders(entityHeaders), ...notModifiedHeaders], body, ...memory },
    notModifiedHeaders
  }
}

const rawCachingHeaders = toRawHeaders(cachingHeaders)

/**
 * Returns the representation of a resource of the API. A body that is too large for the cache is freed as soon as its
 * response is sent.
 */
export const representResource = (
  { body, etag, promptVersion }: BodyWithEtag,
  workspace: WorkspaceId
): Representation => {
  const caching =
    promptVersion === undefined
      ? rawCachingHeaders
      : [...rawCachingHeaders, "prompt-version", String(promptVersion)]
  const memory = { isFreedWhenSent: body.length > maxCachedBytes, workspace }
  return toRepresentation(body, makeEntityHeaders(body, "application/json"), caching, memory, etag)
}

const entityTag = /(?:W\/)?("[^"]*")/g

/**
 * Returns true if an `If-None-Match` header is `*` or lists the current ETag. Text that is not an entity tag is
 * ignored. The comparison is weak, because a proxy that compresses a response makes the ETag weak.
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
    ? { status: 304, headers: notModifiedHeaders, body: noBody }
    : full
}
