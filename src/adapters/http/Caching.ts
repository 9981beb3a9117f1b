import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { largeBytes } from "../../application/LargeWork.ts"
import { hashInSlices } from "./LargeJson.ts"
import { type Answer, entityHeaders, flat, type HeaderFields, type RequestMessage } from "./Message.ts"

/** On every successful answer of the API (SPEC.md section 8); the ETag comes beside them. */
export const cachingHeaders = {
  "cache-control": "public, s-maxage=30, stale-while-revalidate=300",
  vary: "Authorization"
} as const

/** What there is at a target, ready to be answered with. */
export interface Representation {
  readonly etag: string
  /** The answer to who does not have it yet, and to who does. */
  readonly whole: Answer
  readonly notModified: Answer
}

const empty = new Uint8Array()

/** A strong ETag of a body's bytes. */
export const etagOf = (body: Uint8Array): string => `"${hash("sha256", body, "base64url")}"`

/** What a body is answered with; `caching` is on the 304 too. */
export const representationOf = (
  body: Uint8Array,
  contentType: string,
  caching: HeaderFields,
  etag: string = etagOf(body)
): Representation => {
  const headers = { ...caching, etag }
  return {
    etag,
    whole: { status: 200, headers: flat({ ...entityHeaders(body, contentType), ...headers }), body },
    notModified: { status: 304, headers: flat(headers), body: empty }
  }
}

/** The representation of a JSON body. Hashes a large body slice by slice. */
export const representJson = (body: Uint8Array): Effect.Effect<Representation> => {
  const represent = (etag?: string) => representationOf(body, "application/json", cachingHeaders, etag)
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
export const conditional = (
  { headers }: RequestMessage,
  { etag, whole, notModified }: Representation
): Answer => {
  const ifNoneMatch = headers["if-none-match"]
  return ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag) ? notModified : whole
}
