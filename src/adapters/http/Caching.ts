import { hash } from "node:crypto"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** On every successful answer of the API (SPEC.md section 8); the ETag comes beside them. */
export const cachingHeaders = {
  "cache-control": "public, s-maxage=30, stale-while-revalidate=300",
  vary: "Authorization"
} as const

/** A strong ETag of a body's bytes. */
export const etagOf = (body: Uint8Array): string => `"${hash("sha256", body, "base64url")}"`

const entityTag = /(?:W\/)?("[^"]*")/g

/**
 * Whether `If-None-Match` names the current ETag: a list, `*`, weak comparison, as a compressing proxy makes an ETag
 * weak (DESIGN.md section 5). What is no entity tag is passed over.
 */
export const matchesEtag = (ifNoneMatch: string, etag: string): boolean => {
  if (ifNoneMatch.trim() === "*") return true
  for (const [, opaque] of ifNoneMatch.matchAll(entityTag)) if (opaque === etag) return true
  return false
}

/** A response with headers and ETag, or 304 with the same where the request says that it has it already. */
export const conditional = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  headers: { readonly etag: string; readonly [name: string]: string }
): HttpServerResponse.HttpServerResponse => {
  const ifNoneMatch = request.headers["if-none-match"]
  return ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, headers.etag)
    ? HttpServerResponse.empty({ status: 304, headers })
    : HttpServerResponse.setHeaders(response, headers)
}
