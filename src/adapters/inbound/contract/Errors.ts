import type { AdmissionError } from "../../../application/Admission.ts"
import type { InternalError } from "../../../application/InternalError.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { keyPrefix } from "../../../domain/ApiKey.ts"
import type { InvalidParameter } from "../../../domain/Page.ts"
import type { PromptNotFound } from "../../../domain/Prompt.ts"
import { type RateLimited, windowSeconds } from "../../../domain/RateLimit.ts"
import type { PageTooLarge, ResolvedTooLarge } from "../../../domain/Resolution.ts"
import { sizes } from "../../../domain/Sizes.ts"
import type { VersionNotFound } from "../../../domain/Version.ts"

/** The request is not valid HTTP. */
export const BadRequest = { _tag: "BadRequest" } as const
/** Node's parser rejected a header of the request, such as a header whose value has a line break. */
export const MalformedHeader = { _tag: "MalformedHeader" } as const
export const ExpectationFailed = { _tag: "ExpectationFailed" } as const
export const RouteNotFound = { _tag: "RouteNotFound" } as const
export const MethodNotAllowed = { _tag: "MethodNotAllowed" } as const
export const RequestTimeout = { _tag: "RequestTimeout" } as const
export const HeadersTooLarge = { _tag: "HeadersTooLarge" } as const

export type ApiError =
  | AdmissionError
  | InvalidParameter
  | PromptNotFound
  | VersionNotFound
  | ResolvedTooLarge
  | PageTooLarge
  | Unavailable
  | typeof BadRequest
  | typeof MalformedHeader
  | typeof ExpectationFailed
  | typeof RouteNotFound
  | typeof MethodNotAllowed
  | typeof RequestTimeout
  | typeof HeadersTooLarge
  | typeof InternalError

export type ErrorTag = ApiError["_tag"]

/**
 * The subject of an error. An error about the workspace, such as a missing prompt, depends on the content that the
 * workspace had at the time of the read. The MCP endpoint reports such an error with the HTTP status 200, because the
 * request itself was valid.
 */
type ErrorSubject = "request" | "caller" | "workspace" | "service"

/** The properties of an endpoint that determine its errors. */
export interface EndpointShape {
  /** The path without the prefix of the API, such as `/prompts/:id`. */
  readonly path: string
  readonly hasQuery: boolean
}

/** The response to one error. `headers` excludes the headers that every error response has. */
interface ErrorSpec<E> {
  readonly status: number
  readonly code: string
  readonly message: string | ((error: E) => string)
  readonly headers?: Readonly<Record<string, string>> | ((error: E) => Readonly<Record<string, string>>)
  /** The condition under which the error occurs, as a clause for a sentence of the OpenAPI document. */
  readonly condition: string
  readonly subject: ErrorSubject
  /** Returns true if an endpoint of the API reports the error. By default, every endpoint reports the error. */
  readonly isReportedBy?: (endpoint: EndpointShape) => boolean
}

const badRequest = { status: 400, code: "BAD_REQUEST", message: "Bad request", subject: "request" } as const
const unauthorized = { status: 401, code: "UNAUTHORIZED", subject: "caller" } as const
/** The 401 response to a request whose key was rejected. */
const invalidToken = {
  ...unauthorized,
  headers: { "www-authenticate": 'Bearer realm="api", error="invalid_token"' }
} as const
const paymentRequired = { status: 402, subject: "caller" } as const
const notFound = { status: 404, code: "NOT_FOUND" } as const

const makeRateLimitHeaders = (error: RateLimited) => ({
  "retry-after": String(error.retry_after),
  "ratelimit-policy": `"${error.scope}";q=${error.limit};w=${windowSeconds}`,
  ratelimit: `"${error.scope}";r=0;t=${error.retry_after}`
})

/** All errors that a response of the HTTP API can report (specification 5 and 7). */
export const errors: { readonly [T in ErrorTag]: ErrorSpec<Extract<ApiError, { readonly _tag: T }>> } = {
  BadRequest: { ...badRequest, condition: "the request is not valid HTTP" },
  MalformedHeader: {
    ...badRequest,
    message: "Malformed request header: a value, such as an API key, must be on one line",
    condition: "a request header is malformed"
  },
  InvalidParameter: {
    ...badRequest,
    message: (error) => error.message,
    condition: "a query parameter is invalid",
    isReportedBy: ({ hasQuery }) => hasQuery
  },
  MalformedAuthorization: {
    ...unauthorized,
    message: "Missing or malformed Authorization header",
    headers: { "www-authenticate": 'Bearer realm="api"' },
    condition: "the `Authorization` header is missing or is not `Bearer <key>`"
  },
  InvalidKeyFormat: {
    ...invalidToken,
    message: "Invalid API key format",
    condition: `the key does not start with \`${keyPrefix}\``
  },
  InvalidKey: { ...invalidToken, message: "Invalid API key", condition: "the key does not exist" },
  KeyRevoked: {
    ...invalidToken,
    message: "API key has been revoked",
    condition: "the key has been revoked or has expired"
  },
  OwnerMustReset: {
    ...invalidToken,
    message: "API key owner must reset password",
    condition: "the owner of the key must reset the password"
  },
  NoOrganization: {
    ...invalidToken,
    message: "API key has no organization assigned",
    condition: "the key belongs to no workspace"
  },
  Disputed: {
    ...paymentRequired,
    code: "DISPUTED",
    message: "Workspace has an active payment dispute",
    condition: "a payment of the workspace is disputed"
  },
  PastDue: {
    ...paymentRequired,
    code: "PAST_DUE",
    message: "Subscription is past due or over its limit",
    condition: "the subscription of the workspace is past due or over its limit"
  },
  ApiNotAllowed: {
    status: 403,
    code: "API_NOT_ALLOWED",
    message: "API access requires the Solo plan or higher",
    condition: "the workspace is on the Free tier",
    subject: "caller"
  },
  PromptNotFound: {
    ...notFound,
    message: "Prompt not found",
    condition: "the workspace has no prompt with this id or name",
    subject: "workspace",
    isReportedBy: ({ path }) => path.includes(":id") && !path.includes(":version")
  },
  VersionNotFound: {
    ...notFound,
    message: "Version not found",
    condition: "the workspace has no such prompt, or the prompt has no such version",
    subject: "workspace",
    isReportedBy: ({ path }) => path.includes(":version")
  },
  RouteNotFound: {
    ...notFound,
    message: "Route not found",
    condition: "no endpoint has this path",
    subject: "request",
    isReportedBy: ({ path }) => path.includes(":")
  },
  MethodNotAllowed: {
    status: 405,
    code: "METHOD_NOT_ALLOWED",
    message: "Method not allowed",
    headers: { allow: "GET, HEAD" },
    condition: "the method is neither `GET` nor `HEAD`",
    subject: "request"
  },
  RequestTimeout: {
    status: 408,
    code: "REQUEST_TIMEOUT",
    message: "Request timeout",
    condition: "the request did not arrive completely in time",
    subject: "request"
  },
  ExpectationFailed: {
    ...badRequest,
    status: 417,
    message: "Unknown expectation",
    condition: "the `Expect` header is not `100-continue`"
  },
  ResolvedTooLarge: {
    status: 422,
    code: "RESOLVED_TOO_LARGE",
    message: "Resolved content is too large",
    condition: `the resolved content would exceed ${sizes.contentBytes / 1024 / 1024} MiB`,
    subject: "workspace",
    isReportedBy: ({ path }) => path === "/prompts/:id/resolved"
  },
  PageTooLarge: {
    status: 422,
    code: "RESOLVED_TOO_LARGE",
    message:
      "Resolved prompts are too large for one response: ask for fewer prompts, for example with per_page",
    condition: `the resolved prompts together would exceed ${sizes.contentBytes / 1024 / 1024} MiB`,
    subject: "workspace",
    isReportedBy: ({ path }) => path === "/resolved"
  },
  RateLimited: {
    status: 429,
    code: "RATE_LIMITED",
    message: "Rate limit exceeded",
    headers: makeRateLimitHeaders,
    condition: "the rate limit of the key or of the process is exceeded: wait for `Retry-After`",
    subject: "caller"
  },
  HeadersTooLarge: {
    status: 431,
    code: "HEADERS_TOO_LARGE",
    message: "Request headers are too large",
    condition: "the request headers are too large",
    subject: "request"
  },
  InternalError: {
    status: 500,
    code: "INTERNAL_ERROR",
    message: "Internal error",
    condition: "an unexpected failure occurred",
    subject: "service"
  },
  Unavailable: {
    status: 503,
    code: "SERVICE_UNAVAILABLE",
    message: "Service unavailable",
    headers: { "retry-after": "1" },
    condition: "the service is starting, stopping or overloaded, or cannot read its database in time",
    subject: "service"
  }
}

export interface ErrorDescription {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The caching headers of every error response. Caches must not store errors, and an error depends on the key
 * (specification 8).
 */
const commonHeaders = { "cache-control": "no-store", vary: "Authorization" } as const

/** Describes the response to an error. `headers` includes the headers that every error response has. */
export const describeError = (error: ApiError): ErrorDescription => {
  const { status, code, message, headers } = errors[error._tag] as ErrorSpec<ApiError>
  return {
    status,
    code,
    message: typeof message === "function" ? message(error) : message,
    headers: { ...commonHeaders, ...(typeof headers === "function" ? headers(error) : headers) }
  }
}

export const encodeErrorEnvelope = ({ code, message }: ErrorDescription): string =>
  JSON.stringify({ error: { code, message } })
