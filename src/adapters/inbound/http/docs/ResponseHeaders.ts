import { defaultRateLimits } from "../../../../application/access/Admission.ts"
import { maxInt32 } from "../../../../domain/Sizes.ts"
import type { JsonObject } from "../../../../domain/Json.ts"
import { windowSeconds } from "../../../../domain/time/RateWindow.ts"
import { outageCacheStatus } from "../response/OutageResponse.ts"
import { contentCodings } from "../request/ContentCoding.ts"
import { requestIdPattern } from "../request/RequestHead.ts"
import { cachingHeaders } from "../response/Representation.ts"
import { exampleVersion } from "./Examples.ts"

/** Describes a header by all of its values. The first value is the example. */
const withValues = (description: string, ...values: ReadonlyArray<string>): JsonObject => ({
  description,
  required: true,
  schema: { type: "string", enum: values },
  example: values[0]
})

const withSchema = (description: string, schema: JsonObject, example: string | number): JsonObject => ({
  description,
  required: true,
  schema,
  example
})

const etag = withSchema(
  "Identifies this response. Send it as `If-None-Match` to revalidate.",
  { type: "string", pattern: '^"[A-Za-z0-9_-]{43}"$' },
  '"MDlaeQcUqEdJ1tttcPwUfV7bpVf-LVOIZ4SAnwLxlNI"'
)

const retryAfter = (example: number): JsonObject =>
  withSchema(
    "Seconds to wait before the next attempt.",
    { type: "integer", minimum: 1, maximum: windowSeconds },
    example
  )

const cacheControl = "Only successful responses may be cached, separately for each key."
const vary = withValues("Responses differ per API key.", cachingHeaders.vary)

const commonHeaders = {
  "X-Request-Id": withSchema(
    "Request id: the one that was sent, or a generated one.",
    { type: "string", pattern: requestIdPattern.source },
    "5e2cf1d3-0b5f-4f9e-9a63-8f0d6f6b9c1e"
  ),
  "X-Content-Type-Options": withValues("Disables MIME sniffing.", "nosniff")
}

/** Describes the headers of a 200 with a resource. The 304 for this resource has the same headers. */
export const describeSuccessHeaders = (hasPromptVersion: boolean): JsonObject => ({
  ...commonHeaders,
  "Cache-Control": withValues(cacheControl, cachingHeaders["cache-control"], "no-store"),
  Vary: vary,
  ETag: etag,
  ...(hasPromptVersion
    ? {
        "Prompt-Version": withSchema(
          "Version number of the prompt's content in this response.",
          { type: "integer", minimum: 0, maximum: maxInt32 },
          exampleVersion
        )
      }
    : {}),
  Age: {
    ...withSchema(
      "Only while the database is unreachable: seconds since this response was known to be current.",
      { type: "integer", minimum: 0 },
      42
    ),
    required: false
  },
  "Cache-Status": {
    ...withValues(
      "Only while the database is unreachable: the response comes from the service's cache (RFC 9211).",
      outageCacheStatus
    ),
    required: false
  }
})

const headersByStatus: Readonly<Record<number, JsonObject>> = {
  401: {
    "WWW-Authenticate": withValues(
      'Bearer challenge, with `error="invalid_token"` if a key was sent and rejected.',
      'Bearer realm="api"',
      'Bearer realm="api", error="invalid_token"'
    )
  },
  405: { Allow: withValues("The methods that the path accepts.", "GET, HEAD") },
  429: {
    "Retry-After": retryAfter(42),
    "RateLimit-Policy": withSchema(
      "The limit that was exceeded: requests (`q`) per window of `w` seconds.",
      { type: "string", pattern: `^"(key|process)";q=[0-9]+;w=${windowSeconds}$` },
      `"key";q=${defaultRateLimits.perKey};w=${windowSeconds}`
    ),
    RateLimit: withSchema(
      "Requests left (`r`) and seconds until the limit resets (`t`).",
      { type: "string", pattern: '^"(key|process)";r=0;t=[0-9]+$' },
      '"key";r=0;t=42'
    )
  },
  503: { "Retry-After": retryAfter(1) }
}

export const describeErrorHeaders = (status: number): JsonObject => ({
  ...commonHeaders,
  "Cache-Control": withValues(cacheControl, "no-store"),
  Vary: vary,
  ...headersByStatus[status]
})

export const healthHeaders: JsonObject = {
  ...commonHeaders,
  "Cache-Control": withValues("The response must not be cached.", "no-store")
}

/** The headers of a 304 for `/openapi.json` and `/docs`. */
export const unmodifiedPageHeaders: JsonObject = {
  ...commonHeaders,
  ETag: etag,
  "Cache-Control": withValues("A cache must revalidate the page on each use.", "no-cache"),
  Vary: withValues(
    "The page is compressed if the request accepts one of the content codings.",
    "Accept-Encoding"
  )
}

/** The headers of `/openapi.json` and `/docs`. */
export const pageHeaders: JsonObject = {
  ...unmodifiedPageHeaders,
  "Content-Encoding": {
    description: "Compression of the page. The header is missing if the page is not compressed.",
    required: false,
    schema: { type: "string", enum: contentCodings }
  }
}
