import type { AdmissionError } from "../../../application/access/Admission.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { InvalidParameter } from "../../../domain/Page.ts"
import type { PromptNotFound } from "../../../domain/Prompt.ts"
import { type RateLimited, windowSeconds } from "../../../domain/RateWindow.ts"
import type { ResolvedTooLarge } from "../../../domain/Resolution.ts"
import type { VersionNotFound } from "../../../domain/Version.ts"

/** The errors that only HTTP requests can cause. */
export const BadRequest = { _tag: "BadRequest" } as const
/** A header that Node's parser rejects, such as a value with a line break. */
export const MalformedHeader = { _tag: "MalformedHeader" } as const
export const ExpectationFailed = { _tag: "ExpectationFailed" } as const
export const RouteNotFound = { _tag: "RouteNotFound" } as const
export const MethodNotAllowed = { _tag: "MethodNotAllowed" } as const
export const RequestTimeout = { _tag: "RequestTimeout" } as const
export const HeadersTooLarge = { _tag: "HeadersTooLarge" } as const
/** An unexpected failure, which the log describes. */
export const InternalError = { _tag: "InternalError" } as const

export type ApiError =
  | AdmissionError
  | InvalidParameter
  | PromptNotFound
  | VersionNotFound
  | ResolvedTooLarge
  | Unavailable
  | typeof BadRequest
  | typeof MalformedHeader
  | typeof ExpectationFailed
  | typeof RouteNotFound
  | typeof MethodNotAllowed
  | typeof RequestTimeout
  | typeof HeadersTooLarge
  | typeof InternalError

/** The tag of an error that a response can report. */
export type ErrorTag = ApiError["_tag"]

/** The response to one error: its status, the code and message of its envelope, and its own headers. */
export interface ErrorSpec<E> {
  readonly status: number
  readonly code: string
  readonly message: string | ((error: E) => string)
  readonly headers?: Readonly<Record<string, string>> | ((error: E) => Readonly<Record<string, string>>)
}

const badRequest = { status: 400, code: "BAD_REQUEST", message: "Bad request" } as const
const unauthorized = { status: 401, code: "UNAUTHORIZED" } as const
const challenge = { "www-authenticate": 'Bearer realm="api"' } as const
const invalidToken = { "www-authenticate": 'Bearer realm="api", error="invalid_token"' } as const
const notFound = { status: 404, code: "NOT_FOUND" } as const

const makeRateLimitHeaders = (error: RateLimited) => ({
  "retry-after": String(error.retry_after),
  "ratelimit-policy": `"${error.scope}";q=${error.limit};w=${windowSeconds}`,
  ratelimit: `"${error.scope}";r=0;t=${error.retry_after}`
})

/** The one table of all errors that a response can report (specification 5 and 7). */
export const errors: { readonly [T in ErrorTag]: ErrorSpec<Extract<ApiError, { readonly _tag: T }>> } = {
  BadRequest: badRequest,
  MalformedHeader: {
    ...badRequest,
    message: "Malformed request header: a value, such as an API key, must be on one line"
  },
  InvalidParameter: { ...badRequest, message: (error) => error.message },
  MalformedAuthorization: {
    ...unauthorized,
    message: "Missing or malformed Authorization header",
    headers: challenge
  },
  InvalidKeyFormat: { ...unauthorized, message: "Invalid API key format", headers: invalidToken },
  InvalidKey: { ...unauthorized, message: "Invalid API key", headers: invalidToken },
  KeyRevoked: { ...unauthorized, message: "API key has been revoked", headers: invalidToken },
  OwnerMustReset: { ...unauthorized, message: "API key owner must reset password", headers: invalidToken },
  NoOrganization: { ...unauthorized, message: "API key has no organization assigned", headers: invalidToken },
  Disputed: { status: 402, code: "DISPUTED", message: "Workspace has an active payment dispute" },
  PastDue: { status: 402, code: "PAST_DUE", message: "Subscription is past due or over its limit" },
  ApiNotAllowed: {
    status: 403,
    code: "API_NOT_ALLOWED",
    message: "API access requires the Solo plan or higher"
  },
  RouteNotFound: { ...notFound, message: "Route not found" },
  PromptNotFound: { ...notFound, message: "Prompt not found" },
  VersionNotFound: { ...notFound, message: "Version not found" },
  MethodNotAllowed: {
    status: 405,
    code: "METHOD_NOT_ALLOWED",
    message: "Method not allowed",
    headers: { allow: "GET, HEAD" }
  },
  RequestTimeout: { status: 408, code: "REQUEST_TIMEOUT", message: "Request timeout" },
  ExpectationFailed: { ...badRequest, status: 417, message: "Unknown expectation" },
  ResolvedTooLarge: {
    status: 422,
    code: "RESOLVED_TOO_LARGE",
    message: "Resolved content is too large"
  },
  RateLimited: {
    status: 429,
    code: "RATE_LIMITED",
    message: "Rate limit exceeded",
    headers: makeRateLimitHeaders
  },
  HeadersTooLarge: { status: 431, code: "HEADERS_TOO_LARGE", message: "Request headers are too large" },
  InternalError: { status: 500, code: "INTERNAL_ERROR", message: "Internal error" },
  Unavailable: {
    status: 503,
    code: "SERVICE_UNAVAILABLE",
    message: "Service unavailable",
    headers: { "retry-after": "1" }
  }
}

/** The status, code, message and headers of one error. */
export interface ErrorDescription {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

/** The headers of every error: errors are never stored, and differ per key (specification 8). */
const commonHeaders = { "cache-control": "no-store", vary: "Authorization" } as const

/** Returns what the table says about an error. */
export const describeError = (error: ApiError): ErrorDescription => {
  const { status, code, message, headers } = errors[error._tag] as ErrorSpec<ApiError>
  return {
    status,
    code,
    message: typeof message === "function" ? message(error) : message,
    headers: { ...commonHeaders, ...(typeof headers === "function" ? headers(error) : headers) }
  }
}

/** Returns true if all errors with this tag have the same response. */
export const isConstantError = (tag: ApiError["_tag"]): boolean => {
  const { message, headers } = errors[tag]
  return typeof message !== "function" && typeof headers !== "function"
}

/** Returns the envelope of an error as JSON (specification 2.1). */
export const encodeErrorEnvelope = ({ code, message }: ErrorDescription): string =>
  JSON.stringify({ error: { code, message } })
