import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { largeBytes } from "../../../../application/LargeWork.ts"
import { hashInSlices } from "./LargeJson.ts"
import {
  type HttpResponse,
  entityHeaders,
  toRawHeaders,
  type HeaderFields,
  type HttpRequest
} from "../HttpMessage.ts"

/** On every successful answer of the API (SPEC.md section 8); the ETag comes beside them. */
export const cachingHeaders = {
  "cache-control": "public, s-maxage=30, stale-while-revalidate=300",
  vary: "Authorization"
} as const

/** What there is at a target, ready to be answered with. */
export interface Representation {
  readonly etag: string
  /** The answer to who does not have it yet, and to who does. */
  readonly full: HttpResponse
  readonly notModified: HttpResponse
}

const empty = new Uint8Array()

/** A strong ETag of a body's bytes. */
export const computeEtag = (body: Uint8Array): string => `"${hash("sha256", body, "base64url")}"`

/** What a body is answered with; `caching` is on the 304 too. */
export const toRepresentation = (
  body: Uint8Array,
  contentType: string,
  caching: HeaderFields,
  etag: string = computeEtag(body)
): Representation => {
  const headers = { ...caching, etag }
  return {
    etag,
    full: { status: 200, headers: toRawHeaders({ ...entityHeaders(body, contentType), ...headers }), body },
    notModified: { status: 304, headers: toRawHeaders(headers), body: empty }
  }
}

/** The representation of a JSON body. Hashes a large body slice by slice. */
export const representJson = (body: Uint8Array): Effect.Effect<Representation> => {
  const represent = (etag?: string) => toRepresentation(body, "application/json", cachingHeaders, etag)
  return body.length > largeBytes
    ? Effect.map(hashInSlices(body), (digest) => represent(`"${digest}"`))
    : Effect.succeed(represent())
}

const entityTag = /(?:W\/)?("[^"]*")/g

/**
 * Whether `If-None-Match` names the current ETag: a list, `*`, weak comparison, as a compressing proxy makes an ETag
 * weak (DESIGN.md section 5). What is no entity tag is passed over.
 */
const matchesEtag = (ifNoneMatch: string, etag: string): boolean => {
  if (ifNoneMatch.trim() === "*") return true
  for (const [, opaque] of ifNoneMatch.matchAll(entityTag)) if (opaque === etag) return true
  return false
}

/** The whole representation, or 304 where the request says that it has it already. */
export const respondConditionally = (
  { headers }: HttpRequest,
  { etag, full: whole, notModified }: Representation
): HttpResponse => {
  const ifNoneMatch = headers["if-none-match"]
  return ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag) ? notModified : whole
}
