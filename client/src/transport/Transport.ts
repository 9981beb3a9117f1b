import { type Instant, readClocks, subtract } from "../cache/Age.ts"
import { AbortError, ConnectionError, InvalidResponseError, toApiError } from "../Errors.ts"
import type { Fetch, FetchResponse, Logger } from "./Fetch.ts"
import { KeyStatus } from "./KeyStatus.ts"
import { type CallSettings, now, type Signal, sleep, withLimits } from "./Limits.ts"
import { RateLimitPause } from "./RateLimitPause.ts"
import type { PromptResponse } from "../Resources.ts"

/** Describes a successful response, or a 304 that confirmed an earlier response. */
export interface ResponseInfo extends PromptResponse {
  readonly etag: string | undefined
  /** The number in `Prompt-Version`. */
  readonly version: number | undefined
  readonly requestId: string | undefined
  /** The age of the text when the response arrived, in milliseconds: the value of `Age`, or 0. */
  readonly age: number
  /** When the service confirmed the text: the start of the request minus the age. */
  readonly confirmedAt: Instant
  /** True if the service responded from its memory, because its database was not available. */
  readonly isServedStale: boolean
}

export interface SuccessResponse {
  readonly info: ResponseInfo
  /** The body, or `undefined` for a 304. */
  readonly text: string | undefined
  /** The parsed body. */
  readonly envelope: unknown
}

export interface TransportOptions {
  readonly apiKey: string
  readonly baseUrl: string
  /** True if `baseUrl` is the default, which is rarely right in production. */
  readonly isDefaultUrl: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: Fetch
  readonly logger: Logger
}

/**
 * Validates headers and converts their names to lower case. Uses the class `Headers` only if there are headers, because
 * Node takes 20 ms to load this class.
 */
export const normalizeHeaders = (headers: CallSettings["headers"]): Readonly<Record<string, string>> =>
  headers ? Object.fromEntries(new Headers(headers)) : {}

/** Returns true if the same request may succeed later. */
const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/**
 * The longest delay that the client accepts from a `Retry-After`, in milliseconds. The service sends at most one
 * minute. A larger value comes from a proxy, and must not stop the client for longer.
 */
const maxRetryAfterMs = 60_000

/**
 * Returns the backoff before a retry, in milliseconds. The backoff is exponential with jitter. The maximum is 500
 * before the first retry and doubles with each further retry, up to 8,000. The backoff is between half of the maximum
 * and the maximum, at random.
 */
const computeBackoff = (attempt: number): number =>
  (Math.min(8000, 250 * 2 ** attempt) * (1 + Math.random())) / 2

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

const parseCount = (value: string | null): number | undefined =>
  value !== null && /^\d{1,15}$/.test(value) ? Number(value) : undefined

/** Returns the largest of the ages that the caches on the way have sent, in milliseconds. */
const parseAge = (value: string | null): number =>
  Math.max(...(value ?? "").split(",").map((age) => parseCount(age.trim()) ?? 0)) * 1000

/** Matches the `Cache-Status` (RFC 9211) of a response that the service sends while its database is not available. */
const servedStalePattern = /(^|,)\s*"?prompt-retrieval"?\s*;[^,]*\bdetail="?database-unavailable\b/

const jsonTypePattern = /^application\/(.+\+)?json\b/i

/** Sends authenticated requests and retries transient failures within the call's limits. */
export class Transport {
  readonly #options: TransportOptions
  /** Clients that `withOptions` creates for the same key share the pause and the status of the key. */
  pause: RateLimitPause = new RateLimitPause()
  keyStatus: KeyStatus = new KeyStatus()

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /**
   * Requests a target (path and query). The body of the response must satisfy `isEnvelope`. The response is a 304 if
   * the response with this `etag` is still current. Rejects with a `PromptClientError`.
   */
  send(
    target: string,
    settings: CallSettings,
    isEnvelope: (body: UnknownJson) => boolean,
    etag?: string
  ): Promise<SuccessResponse> {
    const { fetch, baseUrl } = this.#options
    const headers = this.#buildHeaders(settings, etag)
    const run = async (signal: Signal, deadline: number) => {
      for (let attempt = 1; ; attempt++) {
        await this.pause.wait(signal, deadline)
        const log = this.#startLog(target, attempt, signal)
        const sentAt = readClocks()
        const canRetryAfter = (delay: number) => attempt <= settings.maxRetries && now() + delay < deadline
        let delay = computeBackoff(attempt)
        let parse: (() => SuccessResponse) | undefined
        try {
          const response = await fetch(baseUrl + target, {
            method: "GET",
            headers,
            redirect: "manual",
            signal
          })
          const { status } = response
          const retryAfter = parseCount(response.headers.get("retry-after"))
          if (retryAfter !== undefined) delay = Math.min(retryAfter * 1000, maxRetryAfterMs)
          if (status === 429) this.pause.extend(delay, this.#getRequestId(response))
          const isDiscarded = signal.aborted || (isTransient(status) && canRetryAfter(delay))
          const text = isDiscarded ? cancelBody(response) : await response.text()
          log(status, this.#getRequestId(response))
          if (text !== undefined)
            parse = () => this.#parse(response, text, sentAt, retryAfter, isEnvelope, etag)
        } catch (error) {
          log()
          if (!canRetryAfter(delay)) {
            throw this.#toConnectionError(error)
          }
        }
        if (parse) return parse()
        await sleep(delay, signal)
      }
    }
    return this.keyStatus.observe(() => withLimits(settings, run))
  }

  #buildHeaders(settings: CallSettings, etag: string | undefined): Record<string, string> {
    return {
      ...this.#options.headers,
      ...normalizeHeaders(settings.headers),
      accept: "application/json",
      authorization: `Bearer ${this.#options.apiKey}`,
      ...(etag && { "if-none-match": etag })
    }
  }

  /** Parses a complete response, or throws the error that the response represents. */
  #parse(
    response: FetchResponse,
    text: string,
    sentAt: Instant,
    retryAfter: number | undefined,
    isEnvelope: (body: UnknownJson) => boolean,
    etag: string | undefined
  ): SuccessResponse {
    const { status, headers } = response
    if (status === 304 && etag)
      return { info: this.#describe(response, sentAt), text: undefined, envelope: undefined }
    const type = headers.get("content-type") ?? "without a content type"
    const body = jsonTypePattern.test(type) ? parseJson(text) : undefined
    if (status >= 200 && status < 300 && isEnvelope(body)) {
      return { info: this.#describe(response, sentAt), text, envelope: body }
    }
    const requestId = this.#getRequestId(response)
    const { code, message } = body?.error ?? {}
    if (status === 404 && message === "Route not found") {
      throw new InvalidResponseError(
        "Unexpected response: 404 Route not found; check baseUrl",
        status,
        requestId
      )
    }
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

  #describe(response: FetchResponse, sentAt: Instant): ResponseInfo {
    const { status, headers } = response
    const age = parseAge(headers.get("age"))
    return {
      status,
      headers,
      etag: headers.get("etag") ?? undefined,
      version: parseCount(headers.get("prompt-version")),
      requestId: this.#getRequestId(response),
      age,
      confirmedAt: subtract(sentAt, age),
      isServedStale: servedStalePattern.test(headers.get("cache-status") ?? "")
    }
  }

  #toConnectionError(error: unknown): ConnectionError {
    const { baseUrl, isDefaultUrl } = this.#options
    const hint = isDefaultUrl ? ` (PROMPT_RETRIEVAL_URL is not set; the default is ${baseUrl})` : ""
    return new ConnectionError(this.#redact(`No response from the service: ${describeCauses(error)}`) + hint)
  }

  #getRequestId(response: FetchResponse): string | undefined {
    const id = response.headers.get("x-request-id")
    return id ? this.#redact(id) : undefined
  }

  /** Removes the API key, which a response or an error message may repeat. */
  #redact(text: string): string {
    return text.replaceAll(this.#options.apiKey, "[API key]")
  }

  /**
   * Starts the clock of an attempt. The returned function logs the outcome. An undefined status means that there was no
   * response.
   */
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
