import { AbortError, ConnectionError, InvalidResponseError, toApiError } from "./Errors.ts"
import { type CallSettings, now, type Signal, sleep, withLimits } from "./Limits.ts"

/** The options that the client passes to `fetch`. */
export interface FetchInit {
  readonly method: "GET"
  readonly headers: Record<string, string>
  readonly redirect: "manual"
  readonly signal: Signal
}

/** The part of `Response` that the client uses. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
  text(): Promise<string>
}

/** The standard `fetch` or a replacement. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>

/** Log fields of one attempt. They never contain the API key, the query string or a body. */
export interface LogFields {
  readonly method: "GET"
  /** Path of the request, without the query string. */
  readonly path: string
  /** HTTP status code; undefined if there was no complete response. */
  readonly status: number | undefined
  /** In milliseconds. */
  readonly duration: number
  /** The response's `X-Request-Id`, if any. */
  readonly requestId: string | undefined
  /** Number of the attempt, starting at 1. */
  readonly attempt: number
}

/**
 * Receives one line for each attempt: `warn` after a connection error, a timeout, 408, 429 or 5xx, otherwise `debug`.
 * `console` is a valid logger. Exceptions thrown by a logger are ignored.
 */
export interface Logger {
  debug?(message: string, fields: LogFields): void
  warn?(message: string, fields: LogFields): void
}

/** A successful response. */
export interface SuccessResponse {
  readonly text: string
  /** The parsed text. */
  readonly envelope: unknown
  readonly etag: string | null
}

export interface TransportOptions {
  readonly apiKey: string
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: Fetch
  readonly logger: Logger
}

/** True if the same request may succeed later. */
const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/**
 * The longest delay that the client takes from a `Retry-After`, in milliseconds. The service sends at most one minute. A
 * larger value comes from a proxy and must not silence the client.
 */
const maxRetryAfterMs = 60_000

/**
 * Exponential backoff with jitter, in milliseconds: 500 before the first retry, doubled for each further retry up to
 * 8,000, minus up to half at random.
 */
const computeBackoff = (attempt: number): number =>
  (Math.min(8000, 250 * 2 ** attempt) * (1 + Math.random())) / 2

/**
 * Parses `Retry-After` (seconds or an HTTP date) to seconds. A date is compared with the response's `Date` header, or with
 * the local clock if there is none.
 */
const parseRetryAfter = (headers: FetchResponse["headers"]): number | undefined => {
  const value = headers.get("retry-after")?.trim() ?? ""
  if (/^\d+$/.test(value)) return Number(value)
  const millis = Date.parse(value) - (Date.parse(headers.get("date") ?? "") || Date.now())
  return / GMT$/.test(value) && !Number.isNaN(millis) ? Math.max(0, Math.ceil(millis / 1000)) : undefined
}

/** Joins the messages of an error and its causes. */
const describeCauses = (error: unknown): string => {
  const messages: Array<string> = []
  for (let cause = error; cause instanceof Error && messages.length < 5; cause = cause.cause) {
    messages.push(cause.message || (cause as { code?: string }).code || cause.name)
  }
  return messages.join(": ") || "no reason given"
}

const cancelBody = (response: FetchResponse): undefined => {
  response.body?.cancel().catch(() => {})
}

/** Parsed JSON of unknown shape. Every property access must allow for `undefined`. */
// biome-ignore lint/suspicious/noExplicitAny: `unknown` would need a type guard for each property access.
export type UnknownJson = any

const parseJson = (text: string): UnknownJson => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const jsonType = /^application\/(.+\+)?json\b/i

/** Sends authenticated requests and retries transient failures within the call's limits. */
export class Transport {
  readonly #options: TransportOptions
  /** No request is sent before `until`, because the request with this id got a 429. */
  #pause: { readonly until: number; readonly requestId: string | undefined } = {
    until: 0,
    requestId: undefined
  }

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /**
   * Requests a target (path and query) whose body must satisfy `isEnvelope`. Resolves to `undefined` if the representation
   * named by `etag` is current. Rejects with a `PromptClientError`.
   */
  send(
    target: string,
    settings: CallSettings,
    isEnvelope: (body: UnknownJson) => boolean,
    etag?: string | null
  ): Promise<SuccessResponse | undefined> {
    const { fetch, baseUrl } = this.#options
    const headers = this.#buildHeaders(settings, etag)
    return withLimits(settings, async (signal, deadline) => {
      for (let attempt = 1; ; attempt++) {
        await this.#waitForPause(signal, deadline)
        const log = this.#startLog(target, attempt, signal)
        const canRetryAfter = (delay: number) => attempt <= settings.maxRetries && now() + delay < deadline
        let delay = computeBackoff(attempt)
        let parse: (() => SuccessResponse | undefined) | undefined
        try {
          const response = await fetch(baseUrl + target, {
            method: "GET",
            headers,
            redirect: "manual",
            signal
          })
          const { status } = response
          const retryAfter = parseRetryAfter(response.headers)
          if (retryAfter !== undefined) delay = Math.min(retryAfter * 1000, maxRetryAfterMs)
          if (status === 429) this.#pauseFor(delay, this.#getRequestId(response))
          const isDiscarded = signal.aborted || (isTransient(status) && canRetryAfter(delay))
          const text = isDiscarded ? cancelBody(response) : await response.text()
          log(status, this.#getRequestId(response))
          if (text !== undefined) parse = () => this.#parse(response, text, retryAfter, isEnvelope, etag)
        } catch (error) {
          log()
          if (!canRetryAfter(delay)) {
            throw new ConnectionError(this.#redact(`No response from the service: ${describeCauses(error)}`))
          }
        }
        if (parse !== undefined) return parse()
        await sleep(delay, signal)
      }
    })
  }

  #buildHeaders(settings: CallSettings, etag: string | null | undefined): Record<string, string> {
    const headers = new Headers(this.#options.headers)
    for (const [name, value] of Object.entries(settings.headers ?? {})) headers.set(name, value)
    headers.set("accept", "application/json")
    headers.set("authorization", `Bearer ${this.#options.apiKey}`)
    if (etag) headers.set("if-none-match", etag)
    return Object.fromEntries(headers)
  }

  /** Waits until the pause ends; another call may extend it meanwhile. Rejects at once if it outlasts the deadline. */
  async #waitForPause(signal: Signal, deadline: number): Promise<void> {
    for (;;) {
      const { until, requestId } = this.#pause
      const delay = until - now()
      if (delay <= 0) return
      if (until >= deadline) {
        throw toApiError({
          status: 429,
          code: "RATE_LIMITED",
          message: "Rate limit exceeded; no request was sent",
          requestId,
          retryAfter: Math.ceil(delay / 1000)
        })
      }
      await sleep(delay, signal)
    }
  }

  /** Pauses all calls for a delay in milliseconds. Never shortens a pause. */
  #pauseFor(delay: number, requestId: string | undefined): void {
    const until = now() + delay
    if (until > this.#pause.until) this.#pause = { until, requestId }
  }

  /** Parses a complete response, or throws the error that it represents. */
  #parse(
    response: FetchResponse,
    text: string,
    retryAfter: number | undefined,
    isEnvelope: (body: UnknownJson) => boolean,
    etag: string | null | undefined
  ): SuccessResponse | undefined {
    const { status, headers } = response
    if (status === 304 && etag) return undefined
    const type = headers.get("content-type") ?? "without a content type"
    const body = jsonType.test(type) ? parseJson(text) : undefined
    if (status >= 200 && status < 300 && isEnvelope(body)) {
      return { text, envelope: body, etag: headers.get("etag") }
    }
    const requestId = this.#getRequestId(response)
    const { code, message } = body?.error ?? {}
    if (status >= 400 && typeof code === "string" && typeof message === "string") {
      throw toApiError({
        status,
        code: this.#redact(code),
        message: this.#redact(message),
        requestId,
        retryAfter
      })
    }
    // Browsers report a redirect that is not followed as status 0.
    const isRedirect = status === 0 || (status >= 300 && status < 400 && status !== 304)
    throw new InvalidResponseError(
      isRedirect
        ? `Unexpected response: ${status} redirect; set baseUrl to its target`
        : this.#redact(`Unexpected response: ${status} ${type}`),
      status,
      requestId
    )
  }

  #getRequestId(response: FetchResponse): string | undefined {
    const id = response.headers.get("x-request-id")
    return id === null ? undefined : this.#redact(id)
  }

  /** Removes the API key, which a response or an error message may repeat. */
  #redact(text: string): string {
    return text.replaceAll(this.#options.apiKey, "[API key]")
  }

  /** Starts the clock of an attempt. The returned function logs the outcome; without a status, there was no response. */
  #startLog(target: string, attempt: number, signal: Signal) {
    const start = now()
    const path = this.#redact(target.replace(/\?.*/, ""))
    return (status?: number, requestId?: string): void => {
      const { logger } = this.#options
      const isFailure = status === undefined ? !(signal.reason instanceof AbortError) : isTransient(status)
      const fields = { method: "GET", path, status, duration: now() - start, requestId, attempt } as const
      try {
        logger[isFailure ? "warn" : "debug"]?.(`GET ${path} ${status ?? "without a response"}`, fields)
      } catch {
        // An error in the logger must not fail the call.
      }
    }
  }
}
