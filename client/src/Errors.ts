/** Base class of the client's errors. An invalid option or argument causes a `TypeError` or a `RangeError` instead. */
export class PromptClientError extends Error {
  override get name(): string {
    return "PromptClientError"
  }
}

/** The contents of an error response. */
export interface ErrorResponse {
  /** HTTP status code. */
  readonly status: number
  /** Machine-readable code, which is stable. */
  readonly code: string
  /** Human-readable text, which may change. */
  readonly message: string
  /** The response's `X-Request-Id`. Include it when you ask for support. */
  readonly requestId?: string | undefined
  /** Seconds to wait before retrying, if the response has a `Retry-After` header. */
  readonly retryAfter?: number | undefined
}

/**
 * The service returned an error. Each `code` of the API has a subclass. An error with any other code is an instance of
 * this class itself.
 */
export class PromptApiError extends PromptClientError implements ErrorResponse {
  override get name(): string {
    return "PromptApiError"
  }
  /** The section of the project's documentation that describes the error. */
  get documentation(): string {
    return `docs/http-api.md#${errorClasses.has(this.code) ? this.code.toLowerCase() : "errors"}`
  }
  declare readonly status: number
  declare readonly code: string
  declare readonly requestId: string | undefined
  declare readonly retryAfter: number | undefined
  constructor(response: ErrorResponse) {
    super(response.message)
    Object.assign(this, response)
  }
}

/**
 * Makes a class whose errors have this `name`, even in minified programs, which change the names of classes. TypeScript
 * distinguishes the classes by their names.
 */
export const makeErrorClass = <Name extends string, Args extends Array<unknown>, A extends PromptClientError>(
  name: Name,
  Base: new (...args: Args) => A
) =>
  class extends (Base as unknown as typeof PromptClientError) {
    override get name(): string {
      return name
    }
  } as unknown as new (
    ...args: Args
  ) => A & { readonly name: Name }

/** 400 or 417 `BAD_REQUEST`: the request is invalid; the message names the parameter, if any, and its rule. */
export class BadRequestError extends makeErrorClass("BadRequestError", PromptApiError) {}

/** 401 `UNAUTHORIZED`: the API key was rejected; the message says why. */
export class UnauthorizedError extends makeErrorClass("UnauthorizedError", PromptApiError) {}

/** 402 `DISPUTED`: the workspace has an active payment dispute. */
export class DisputedError extends makeErrorClass("DisputedError", PromptApiError) {}

/** 402 `PAST_DUE`: the subscription is past due or over its limit. */
export class PastDueError extends makeErrorClass("PastDueError", PromptApiError) {}

/** 403 `API_NOT_ALLOWED`: the workspace's tier does not include API access. */
export class ApiNotAllowedError extends makeErrorClass("ApiNotAllowedError", PromptApiError) {}

/** 404 `NOT_FOUND`: the key's workspace has no such prompt or version. */
export class NotFoundError extends makeErrorClass("NotFoundError", PromptApiError) {}

/** 405 `METHOD_NOT_ALLOWED`: a proxy changed the request's method. */
export class MethodNotAllowedError extends makeErrorClass("MethodNotAllowedError", PromptApiError) {}

/** 408 `REQUEST_TIMEOUT`: the service did not receive the whole request in time. */
export class RequestTimeoutError extends makeErrorClass("RequestTimeoutError", PromptApiError) {}

/** 422 `RESOLVED_TOO_LARGE`: the prompt and its fragments together are larger than the service allows. */
export class ResolvedTooLargeError extends makeErrorClass("ResolvedTooLargeError", PromptApiError) {}

/**
 * 429 `RATE_LIMITED`: too many requests per minute. `retryAfter` is the number of seconds to wait: the received number
 * or, if the client sent no request, the remaining seconds of its delay. The client itself waits at most one minute.
 */
export class RateLimitedError extends makeErrorClass("RateLimitedError", PromptApiError) {}

/** 431 `HEADERS_TOO_LARGE`: the request's headers exceed the service's limit. */
export class HeadersTooLargeError extends makeErrorClass("HeadersTooLargeError", PromptApiError) {}

/** 500 `INTERNAL_ERROR`: the service failed unexpectedly. */
export class InternalServerError extends makeErrorClass("InternalServerError", PromptApiError) {}

/** 503 `SERVICE_UNAVAILABLE`: the service is not available, or its response is older than the cache allows. */
export class ServiceUnavailableError extends makeErrorClass("ServiceUnavailableError", PromptApiError) {}

/**
 * The response did not come from an endpoint of the API: it is a redirect, an HTML page, malformed or unexpected JSON,
 * or the response to an unknown path. Either `baseUrl` is wrong, or a proxy responded in place of the service.
 */
export class InvalidResponseError extends makeErrorClass("InvalidResponseError", PromptClientError) {
  declare readonly status: number
  declare readonly requestId: string | undefined
  declare readonly retryAfter: number | undefined
  constructor(response: Omit<ErrorResponse, "code">) {
    super(response.message)
    Object.assign(this, response)
  }
}

/**
 * The connection failed before a complete response arrived, for example because it was refused or reset, or because the
 * host is unknown. The message includes the messages of the underlying errors. `cause` is not set, because an
 * underlying error may contain the API key.
 */
export class ConnectionError extends makeErrorClass("ConnectionError", PromptClientError) {}

/** The call did not complete within its `timeout`. */
export class TimeoutError extends makeErrorClass("TimeoutError", PromptClientError) {}

/** The call's `signal` was aborted; `cause` is the signal's reason. */
export class AbortError extends makeErrorClass("AbortError", PromptClientError) {}

/** Returns the HTTP status of an error, or `undefined` if there was no response. */
export const getStatus = (error: unknown): number | undefined => (error as Partial<ErrorResponse>).status

/** Returns true if the same request may succeed later. */
export const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/**
 * Returns true if the service did not decide about the request: no complete response arrived in time, or the response
 * has the status 402 or a transient status, is a redirect, or is a success with an unexpected body. Any other error is
 * a decision, even if a proxy sent the response. The client must not hide a decision behind a substitute text.
 */
export const isOutage = (error: unknown): error is PromptClientError => {
  const status = getStatus(error)
  return status === undefined
    ? error instanceof ConnectionError || error instanceof TimeoutError
    : status < 400 || status === 402 || isTransient(status)
}

/** The error classes by code: the class of `NOT_FOUND` is `NotFoundError`. */
const errorClasses: ReadonlyMap<string, new (response: ErrorResponse) => PromptApiError> = new Map(
  [
    BadRequestError,
    UnauthorizedError,
    DisputedError,
    PastDueError,
    ApiNotAllowedError,
    NotFoundError,
    MethodNotAllowedError,
    RequestTimeoutError,
    ResolvedTooLargeError,
    RateLimitedError,
    HeadersTooLargeError,
    ServiceUnavailableError
  ].map((Class): [string, new (response: ErrorResponse) => PromptApiError] => [
    Class.prototype.name
      .slice(0, -"Error".length)
      .replace(/\B[A-Z]/g, "_$&")
      .toUpperCase(),
    Class
  ])
).set("INTERNAL_ERROR", InternalServerError)

/** Creates an instance of the error class for the response's `code`. */
export const toApiError = (response: ErrorResponse): PromptApiError =>
  new (errorClasses.get(response.code) ?? PromptApiError)(response)
