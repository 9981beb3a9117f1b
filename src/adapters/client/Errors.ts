/** What every failure of the client's calls is. */
export class PromptClientError extends Error {
  override get name(): string {
    return "PromptClientError"
  }
}

/** What an error answer of the service says. */
export interface ErrorAnswer {
  readonly status: number
  /** The stable identifier to switch on (SPEC.md section 7). */
  readonly code: string
  readonly message: string
  /** The answer's `X-Request-Id`, to be quoted to whoever runs the service. */
  readonly requestId: string | undefined
  /** Seconds to wait, where the answer says so (429 and 503). */
  readonly retryAfter: number | undefined
}

/** The service answered with an error: one class for each `code`, this one itself for a code that it does not know. */
export class PromptApiError extends PromptClientError implements ErrorAnswer {
  override get name(): string {
    return "PromptApiError"
  }
  readonly status: number
  readonly code: string
  readonly requestId: string | undefined
  readonly retryAfter: number | undefined
  constructor(answer: ErrorAnswer) {
    super(answer.message)
    this.status = answer.status
    this.code = answer.code
    this.requestId = answer.requestId
    this.retryAfter = answer.retryAfter
  }
}

/** 400, `BAD_REQUEST`: a parameter breaks its rule; the message says which. */
export class BadRequestError extends PromptApiError {
  override get name(): "BadRequestError" {
    return "BadRequestError"
  }
}

/** 401, `UNAUTHORIZED`: the key is not accepted; the message says why. */
export class UnauthorizedError extends PromptApiError {
  override get name(): "UnauthorizedError" {
    return "UnauthorizedError"
  }
}

/** 402, `DISPUTED`: the workspace has an active payment dispute. */
export class DisputedError extends PromptApiError {
  override get name(): "DisputedError" {
    return "DisputedError"
  }
}

/** 402, `PAST_DUE`: the subscription is past due or over its limit. */
export class PastDueError extends PromptApiError {
  override get name(): "PastDueError" {
    return "PastDueError"
  }
}

/** 403, `API_NOT_ALLOWED`: the workspace's plan has no API access. */
export class ApiNotAllowedError extends PromptApiError {
  override get name(): "ApiNotAllowedError" {
    return "ApiNotAllowedError"
  }
}

/** 404, `NOT_FOUND`: no such prompt or version in the key's workspace. */
export class NotFoundError extends PromptApiError {
  override get name(): "NotFoundError" {
    return "NotFoundError"
  }
}

/** 405, `METHOD_NOT_ALLOWED`: something on the way changed the method. */
export class MethodNotAllowedError extends PromptApiError {
  override get name(): "MethodNotAllowedError" {
    return "MethodNotAllowedError"
  }
}

/** 408, `REQUEST_TIMEOUT`: the request reached the service too slowly. */
export class RequestTimeoutError extends PromptApiError {
  override get name(): "RequestTimeoutError" {
    return "RequestTimeoutError"
  }
}

/**
 * 429, `RATE_LIMITED`: too many requests in this minute; `retryAfter` says when it is over. The client itself waits a
 * minute at most, whatever a proxy sent.
 */
export class RateLimitedError extends PromptApiError {
  override get name(): "RateLimitedError" {
    return "RateLimitedError"
  }
}

/** 431, `HEADERS_TOO_LARGE`: the call's headers are larger than the service reads. */
export class HeadersTooLargeError extends PromptApiError {
  override get name(): "HeadersTooLargeError" {
    return "HeadersTooLargeError"
  }
}

/** 500, `INTERNAL_ERROR`: the service failed. */
export class InternalServerError extends PromptApiError {
  override get name(): "InternalServerError" {
    return "InternalServerError"
  }
}

/** 503, `SERVICE_UNAVAILABLE`: the service can't answer for the moment. */
export class ServiceUnavailableError extends PromptApiError {
  override get name(): "ServiceUnavailableError" {
    return "ServiceUnavailableError"
  }
}

/**
 * Something answered, but not as the service does: a redirect, a page of HTML, JSON that is broken or has another shape.
 * `baseUrl` may be wrong, or a proxy answered in the service's place.
 */
export class InvalidResponseError extends PromptClientError {
  override get name(): "InvalidResponseError" {
    return "InvalidResponseError"
  }
  readonly status: number
  readonly requestId: string | undefined
  constructor(message: string, status: number, requestId: string | undefined) {
    super(message)
    this.status = status
    this.requestId = requestId
  }
}

/**
 * No answer, or not all of it: refused, reset, no such host. The message holds the causes' words; the cause itself is
 * left out, as it may hold the request's headers.
 */
export class ConnectionError extends PromptClientError {
  override get name(): "ConnectionError" {
    return "ConnectionError"
  }
}

/** The call did not end within its `timeout`. */
export class TimeoutError extends PromptClientError {
  override get name(): "TimeoutError" {
    return "TimeoutError"
  }
}

/** The call's `signal` was aborted; `cause` is the signal's reason. */
export class AbortError extends PromptClientError {
  override get name(): "AbortError" {
    return "AbortError"
  }
}

const classes = new Map<string, typeof PromptApiError>([
  ["BAD_REQUEST", BadRequestError],
  ["UNAUTHORIZED", UnauthorizedError],
  ["DISPUTED", DisputedError],
  ["PAST_DUE", PastDueError],
  ["API_NOT_ALLOWED", ApiNotAllowedError],
  ["NOT_FOUND", NotFoundError],
  ["METHOD_NOT_ALLOWED", MethodNotAllowedError],
  ["REQUEST_TIMEOUT", RequestTimeoutError],
  ["RATE_LIMITED", RateLimitedError],
  ["HEADERS_TOO_LARGE", HeadersTooLargeError],
  ["INTERNAL_ERROR", InternalServerError],
  ["SERVICE_UNAVAILABLE", ServiceUnavailableError]
])

/** An error answer as an error of its code's class. */
export const apiErrorOf = (answer: ErrorAnswer): PromptApiError =>
  new (classes.get(answer.code) ?? PromptApiError)(answer)
