import { maxInt32 } from "../../../../domain/Int32.ts"
import { windowSeconds } from "../../../../domain/RateWindow.ts"
import { requestIdPattern } from "../request/RequestId.ts"
import type { JsonObject } from "../../../../domain/Json.ts"

const requestId = "5e2cf1d3-0b5f-4f9e-9a63-8f0d6f6b9c1e"

const toEnumSchema = (values: ReadonlyArray<string>): JsonObject => ({
  type: "string",
  enum: [...new Set(values)]
})

/** Response headers. The enum of a header without a schema is derived from the values that responses have. */
const responseHeaders: Readonly<Record<string, JsonObject>> = {
  "X-Request-Id": {
    description: "Request id: the one that was sent, or a generated one.",
    schema: { type: "string", pattern: requestIdPattern.source }
  },
  "X-Content-Type-Options": { description: "Disables MIME sniffing." },
  "Cache-Control": { description: "Only successful responses may be cached, separately for each key." },
  Vary: { description: "Responses differ per API key." },
  Allow: { description: "The methods that the path accepts." },
  ETag: {
    description: "Identifies this response. Send it as `If-None-Match` to revalidate.",
    schema: { type: "string", pattern: '^"[A-Za-z0-9_-]{43}"$' }
  },
  "Prompt-Version": {
    description: "Version number of the prompt's content in this response.",
    schema: { type: "integer", minimum: 0, maximum: maxInt32 }
  },
  Age: {
    description:
      "Only while the database is unreachable: seconds since this response was known to be current.",
    schema: { type: "integer", minimum: 0 }
  },
  "Cache-Status": {
    description:
      "Only while the database is unreachable: the response comes from the service's cache (RFC 9211)."
  },
  "WWW-Authenticate": {
    description: 'Bearer challenge, with `error="invalid_token"` if a key was sent and rejected.'
  },
  "Retry-After": {
    description: "Seconds to wait before the next attempt.",
    schema: { type: "integer", minimum: 1, maximum: windowSeconds }
  },
  "RateLimit-Policy": {
    description: "The limit that was exceeded: requests (`q`) per window of `w` seconds.",
    schema: { type: "string", pattern: `^"(key|process)";q=[0-9]+;w=${windowSeconds}$` }
  },
  RateLimit: {
    description: "Requests left (`r`) and seconds until the limit resets (`t`).",
    schema: { type: "string", pattern: '^"(key|process)";r=0;t=[0-9]+$' }
  }
}

/** Describes the headers of responses of one kind, derived from the headers of samples. */
export const describeHeaders = (samples: ReadonlyArray<Readonly<Record<string, string>>>): JsonObject => {
  const all: ReadonlyArray<Readonly<Record<string, string>>> = samples.map((headers) => ({
    ...headers,
    "x-request-id": requestId,
    "x-content-type-options": "nosniff"
  }))
  return Object.fromEntries(
    Object.entries(responseHeaders).flatMap(([name, header]) => {
      const values = all.flatMap((headers) => headers[name.toLowerCase()] ?? [])
      if (values.length === 0) return []
      const required = values.length === all.length
      const example =
        header.schema && (header.schema as JsonObject).type === "integer" ? Number(values[0]) : values[0]
      return [[name, { ...header, required, schema: header.schema ?? toEnumSchema(values), example }]]
    })
  )
}
