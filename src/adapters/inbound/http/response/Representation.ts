import { hash } from "node:crypto"
import { cacheLimits } from "../../../../application/cache/CacheLimits.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { cachingHeaders } from "../../contract/Headers.ts"
import {
  type Body,
  encodeBody,
  type HeaderFields,
  type HttpRequest,
  type HttpResponse,
  makeEntityHeaders,
  toRawHeaders
} from "../HttpMessage.ts"

/** The two responses with which a resource is served: a 200 and a 304. */
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

/** Encodes JSON, with a strong ETag of its bytes. */
export const encodeWithEtag = (json: string): BodyWithEtag => {
  const body = encodeBody(json)
  // `hash` encodes a string in UTF-8. It must not get a string body, whose characters are already bytes.
  return { body, etag: computeEtag(typeof body === "string" ? json : body) }
}

/**
 * Returns the representation of a body. The 200 and the 304 both have the headers in `caching`. The 200 also has
 * `entityHeaders` and the fields in `memory`.
 */
export const toRepresentation = (
  { body, etag }: BodyWithEtag,
  entityHeaders: HeaderFields,
  caching: ReadonlyArray<string>,
  memory: Pick<HttpResponse, "isPermanent" | "isFreedWhenSent" | "workspace">
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
 * Returns the representation of a resource of the API. A body that is too large for the response cache is freed as soon
 * as its response is sent.
 */
export const representResource = (content: BodyWithEtag, workspace: WorkspaceId): Representation => {
  const { body, promptVersion } = content
  const caching =
    promptVersion === undefined
      ? rawCachingHeaders
      : [...rawCachingHeaders, "prompt-version", String(promptVersion)]
  const memory = { isFreedWhenSent: body.length > cacheLimits.responses.maxValueSize, workspace }
  return toRepresentation(content, makeEntityHeaders(body, "application/json"), caching, memory)
}

/** Compares two representations of a resource by their headers, which contain the ETag and the version. */
export const isSameRepresentation = (a: Representation, b: Representation): boolean =>
  a.full.headers.every((text, index) => text === b.full.headers[index])

/** Returns the representation of a page, such as `/docs`, which does not change while the process runs. */
export const representPage = (
  text: string,
  contentType: string,
  headers: HeaderFields = {}
): Representation => {
  const body = Buffer.from(text)
  const caching = toRawHeaders({ "cache-control": "no-cache", ...headers })
  const content = { body, etag: computeEtag(body) }
  return toRepresentation(content, makeEntityHeaders(body, contentType), caching, { isPermanent: true })
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
    ? { status: 304, headers: notModifiedHeaders, body: "" }
    : full
}
