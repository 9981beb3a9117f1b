import { makeErrorClass, PromptClientError } from "./ErrorClass.ts"

export { PromptClientError }

/** The contents of an error response. */
export interface ErrorResponse {
  /** HTTP status code. */
  readonly status: number
  /** Machine-readable code. Codes are stable. */
  readonly code: string
  /** Human-readable text. The text can change between versions of the service. */
  readonly message: string
  /** The response's `X-Request-Id`. Include the id when you ask for support. */
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
    return `docs/http-api.md#${findErrorClass(this.code) ? this.code.toLowerCase() : "errors"}`
  }
  declare readonly status: number
  declare readonly code: string
  declare readonly requestId: string | undefined
  declare readonly retryAfter: number | undefined
  constructor(response: ErrorResponse) {
    super(response.message)
    Object.assign(this, response)
  }
  /**
   * Creates an instance of the class for the response's `code`, such as a `NotFoundError` for `NOT_FOUND`.
   *
   * @internal
   */
  static from(response: ErrorResponse): PromptApiError {
    return new (findErrorClass(response.code) ?? PromptApiError)(response)
  }
}

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
 * or, if the client sent no request, the remaining seconds of the client's pause. A pause of the client lasts at most
 * one minute.
 */
export class RateLimitedError extends makeErrorClass("RateLimitedError", PromptApiError) {}

/** 431 `HEADERS_TOO_LARGE`: the request's headers exceed the service's limit. */
export class HeadersTooLargeError extends makeErrorClass("HeadersTooLargeError", PromptApiError) {}

/** 500 `INTERNAL_ERROR`: the service failed unexpectedly. */
export class InternalServerError extends makeErrorClass("InternalServerError", PromptApiError) {}

/** 503 `SERVICE_UNAVAILABLE`: the service is not available, or its response is older than the cache allows. */
export class ServiceUnavailableError extends makeErrorClass("ServiceUnavailableError", PromptApiError) {}

/**
 * The response did not come from an endpoint of the API. It is a redirect, an HTML page, malformed or unexpected JSON,
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
 * The connection failed before a complete response arrived, for example because the host is unknown, refused the
 * connection or reset the connection. The message includes the messages of the underlying errors. `cause` is not set,
 * because an underlying error can contain the API key.
 */
export class ConnectionError extends makeErrorClass("ConnectionError", PromptClientError) {}

/** The call did not complete within its `timeout`. */
export class TimeoutError extends makeErrorClass("TimeoutError", PromptClientError) {}

/** The call's `signal` was aborted; `cause` is the signal's reason. */
export class AbortError extends makeErrorClass("AbortError", PromptClientError) {}

/** The error classes of the API's codes. */
const errorClasses: ReadonlyArray<new (response: ErrorResponse) => PromptApiError> = [
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
  InternalServerError,
  ServiceUnavailableError
]

/** Returns the error class for a code: `NotFoundError` for `NOT_FOUND`, `InternalServerError` for `INTERNAL_ERROR`. */
const findErrorClass = (code: string) =>
  errorClasses.find(
    (Class) =>
      Class.prototype.name
        .replace(/Server|Error/, "")
        .replace(/\B[A-Z]/g, "_$&")
        .toUpperCase() === code
  )
