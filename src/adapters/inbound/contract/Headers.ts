import * as Schema from "effect/Schema"
import { windowSeconds } from "../../../domain/RateLimit.ts"
import { maxInt32 } from "../../../domain/Sizes.ts"

/** How long shared caches and the cache of `App` may serve a response, in seconds (specification 8). */
export const sharedMaxAgeSeconds = 30

/** The caching headers of every successful response of the API, besides its ETag (specification 8). */
export const cachingHeaders = {
  "cache-control": `public, s-maxage=${sharedMaxAgeSeconds}, stale-while-revalidate=300`,
  vary: "Authorization"
} as const

export const requestIdPattern = /^[A-Za-z0-9._-]{1,128}$/u

const text = (description: string, pattern?: RegExp) =>
  (pattern === undefined ? Schema.String : Schema.String.check(Schema.isPattern(pattern))).annotate({
    description
  })
const integer = (description: string, minimum: number, maximum = maxInt32) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum })).annotate({ description })

export const requestHeaders = {
  "If-None-Match": Schema.optionalKey(text("ETags of earlier responses, or `*`. A match returns 304.")),
  "X-Request-Id": Schema.optionalKey(text("Request id: 1 to 128 characters of `A-Z a-z 0-9 . _ -`."))
}

/** The request headers of the endpoints of the API. */
export const resourceRequestHeaders = {
  ...requestHeaders,
  Prefer: Schema.optionalKey(
    text("`wait=N`: instead of a 304, wait at most `N` seconds (1 to 50) for a change (RFC 7240).")
  )
}

/** The headers of every response. */
const commonHeaders = {
  "x-request-id": text("The request id that the client sent, or a generated one.", requestIdPattern),
  "x-content-type-options": text("Disables MIME sniffing.", /^nosniff$/u),
  "cache-control": text("Lets caches store only successful responses of the API, separately for each key.")
}
const vary = text("Responses differ per API key.", /^Authorization$/u)
const etag = text("Identifies this response. Send it as `If-None-Match`.", /^"[A-Za-z0-9_-]{43}"$/u)

export const statusHeaders = Schema.Struct(commonHeaders)
export const documentHeaders = Schema.Struct({ ...commonHeaders, etag })

/** The headers of successful responses of the API. */
export const resourceHeaders = Schema.Struct({
  ...commonHeaders,
  vary,
  etag,
  age: Schema.optionalKey(
    integer("Only while the database is unreachable: seconds since the response was known to be current.", 0)
  ),
  "cache-status": Schema.optionalKey(
    text("Only while the database is unreachable: the response comes from the service's cache (RFC 9211).")
  ),
  "preference-applied": Schema.optionalKey(
    text("Only with 304: the request waited for these seconds without a new response.", /^wait=\d+$/u)
  )
})

/** The headers of successful responses with the content of a prompt. */
export const promptHeaders = Schema.Struct({
  ...resourceHeaders.fields,
  "prompt-version": integer("Version number of the prompt's content in this response.", 0)
})

export const errorHeaders = Schema.Struct({
  ...commonHeaders,
  vary,
  "www-authenticate": Schema.optionalKey(
    text('Only with 401: challenge, with `error="invalid_token"` if a key was sent.', /^Bearer realm="api"/u)
  ),
  allow: Schema.optionalKey(text("Only with 405: the methods that the path accepts.")),
  "retry-after": Schema.optionalKey(
    integer("Only with 429 and 503: seconds to wait before the next attempt.", 1, windowSeconds)
  ),
  "ratelimit-policy": Schema.optionalKey(
    text("Only with 429: the limit, as requests (`q`) per window of `w` seconds.", /^"\w+";q=\d+;w=\d+$/u)
  ),
  ratelimit: Schema.optionalKey(
    text("Only with 429: requests left (`r`) and seconds until the limit resets (`t`).", /^"\w+";r=0;t=\d+$/u)
  )
})
