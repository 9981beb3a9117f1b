import type { AdmissionError } from "../../../application/Admission.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { InvalidParameter } from "../../../domain/Page.ts"
import type { PromptNotFound } from "../../../domain/Prompt.ts"
import type { RateLimited } from "../../../domain/RateWindow.ts"
import type { ResolvedTooLarge } from "../../../domain/Resolution.ts"
import type { VersionNotFound } from "../../../domain/Version.ts"
import { type HttpResponse, entityHeaders, toRawHeaders } from "./HttpMessage.ts"

/** What only HTTP can get wrong. */
export const BadRequest = { _tag: "BadRequest" } as const
export const ExpectationFailed = { _tag: "ExpectationFailed" } as const
export const RouteNotFound = { _tag: "RouteNotFound" } as const
export const MethodNotAllowed = { _tag: "MethodNotAllowed" } as const
export const RequestTimeout = { _tag: "RequestTimeout" } as const
export const HeadersTooLarge = { _tag: "HeadersTooLarge" } as const
/** Whatever nobody expected: a defect. */
export const InternalError = { _tag: "InternalError" } as const

export type ApiError =
  | AdmissionError
  | InvalidParameter
  | PromptNotFound
  | VersionNotFound
  | ResolvedTooLarge
  | Unavailable
  | typeof BadRequest
  | typeof ExpectationFailed
  | typeof RouteNotFound
  | typeof MethodNotAllowed
  | typeof RequestTimeout
  | typeof HeadersTooLarge
  | typeof InternalError

type Tag = ApiError["_tag"]

/** How one error answers: `error.code` and `error.message` of the envelope, and headers beside the common ones. */
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
const internal = { status: 500, code: "INTERNAL_ERROR", message: "Internal error" } as const

const rateHeaders = (error: RateLimited) => ({
  "retry-after": String(error.retry_after),
  "ratelimit-policy": `"${error.scope}";q=${error.limit};w=60`,
  ratelimit: `"${error.scope}";r=0;t=${error.retry_after}`
})

/** Every error the service answers with: the one table of SPEC.md sections 5 and 7 and DESIGN.md section 5. */
export const errors: { readonly [T in Tag]: ErrorSpec<Extract<ApiError, { readonly _tag: T }>> } = {
  BadRequest: badRequest,
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
  RateLimited: { status: 429, code: "RATE_LIMITED", message: "Rate limit exceeded", headers: rateHeaders },
  HeadersTooLarge: { status: 431, code: "HEADERS_TOO_LARGE", message: "Request headers are too large" },
  ResolvedTooLarge: internal,
  InternalError: internal,
  Unavailable: {
    status: 503,
    code: "SERVICE_UNAVAILABLE",
    message: "Service unavailable",
    headers: { "retry-after": "1" }
  }
}

/** An error as an answer: status, headers and the envelope, for whatever writes it. */
export interface ErrorDescription {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

/** On every error: never stored, and never one caller's answer to another (SPEC.md section 8). */
const commonHeaders = { "cache-control": "no-store", vary: "Authorization" } as const

export const describeError = (error: ApiError): ErrorDescription => {
  const row = errors[error._tag] as ErrorSpec<ApiError>
  return {
    status: row.status,
    code: row.code,
    message: typeof row.message === "function" ? row.message(error) : row.message,
    headers: { ...commonHeaders, ...(typeof row.headers === "function" ? row.headers(error) : row.headers) }
  }
}

/** The body of an error (SPEC.md section 2.1). */
export const errorBody = (answer: ErrorDescription): string =>
  JSON.stringify({ error: { code: answer.code, message: answer.message } })

const build = (error: ApiError): HttpResponse => {
  const answer = describeError(error)
  const body = Buffer.from(errorBody(answer))
  return {
    status: answer.status,
    headers: toRawHeaders({ ...answer.headers, ...entityHeaders(body, "application/json") }),
    body
  }
}

/** Errors that carry nothing answer alike each time, so their answers are made once. */
const constant = new Map<Tag, HttpResponse>()

/** What an error is answered with. */
export const toErrorResponse = (error: ApiError): HttpResponse => {
  const row = errors[error._tag]
  if (typeof row.message === "function" || typeof row.headers === "function") return build(error)
  let answer = constant.get(error._tag)
  if (answer === undefined) {
    answer = build(error)
    constant.set(error._tag, answer)
  }
  return answer
}
