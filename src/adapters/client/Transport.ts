import { AbortError, apiErrorOf, ConnectionError, InvalidResponseError } from "./Errors.ts"
import { type Call, now, type Signal, sleep, withLimits } from "./Limits.ts"

/** What the client asks of `fetch`. */
export interface FetchInit {
  readonly method: "GET"
  readonly headers: Record<string, string>
  readonly redirect: "manual"
  readonly signal: Signal
}

/** What the client reads of a `Response`. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
  text(): Promise<string>
}

/** The standard `fetch`, or what stands in for it. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>

/** One attempt of a call. It never holds the key, a query string or anything of a body. */
export interface LogFields {
  readonly method: "GET"
  readonly path: string
  /** None where no answer came. */
  readonly status: number | undefined
  /** Milliseconds. */
  readonly duration: number
  readonly requestId: string | undefined
  /** Counted from 1. */
  readonly attempt: number
}

/**
 * Told of each attempt: `warn` of one without an answer or answered with 408, 429 or 5xx, `debug` of any other. `console`
 * fits. What a logger throws is passed over.
 */
export interface Logger {
  debug?(message: string, fields: LogFields): void
  warn?(message: string, fields: LogFields): void
}

/** A successful answer. */
export interface Answer {
  readonly text: string
  /** The text, parsed. */
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

/** Whether the same request may do better later. */
const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** Half a second doubled with each attempt up to 8 s, of which a random half is taken off: milliseconds. */
const backoff = (attempt: number): number => (Math.min(8000, 250 * 2 ** attempt) * (1 + Math.random())) / 2

/**
 * The longest wait for a `Retry-After`, in milliseconds. The service sends at most a minute; a larger value is from
 * something in between and must not silence the client.
 */
const maxRetryAfter = 60_000

/** `Retry-After` in seconds: a number, or a date, which is read by the service's own clock where it tells it. */
const retryAfterOf = (headers: FetchResponse["headers"]): number | undefined => {
  const value = headers.get("retry-after")?.trim() ?? ""
  if (/^\d+$/.test(value)) return Number(value)
  const millis = Date.parse(value) - (Date.parse(headers.get("date") ?? "") || Date.now())
  return / GMT$/.test(value) && !Number.isNaN(millis) ? Math.max(0, Math.ceil(millis / 1000)) : undefined
}

/** What went wrong on the way, in words: those of the error and of its causes. */
const reasonOf = (error: unknown): string => {
  const words: Array<string> = []
  for (let at = error; at instanceof Error && words.length < 5; at = at.cause) {
    words.push(at.message || (at as { code?: string }).code || at.name)
  }
  return words.join(": ") || "no reason given"
}

const discard = (response: FetchResponse): undefined => {
  response.body?.cancel().catch(() => {})
}

/** The body of an answer, of whatever shape: whoever reads it looks before each step. */
// biome-ignore lint/suspicious/noExplicitAny: steps that are looked at one by one need no types.
export type Untrusted = any

const parse = (text: string): Untrusted => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isJson = /^application\/(.+\+)?json\b/i

/** Sends requests with the key: again where that may help, within the call's limits. */
export class Transport {
  readonly #options: TransportOptions
  /** Until when no call is to be sent, since an answer of 429, and the id of the request that it answered. */
  #pause: { readonly until: number; readonly requestId: string | undefined } = {
    until: 0,
    requestId: undefined
  }

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /**
   * Reads a target, path and query, that answers with an envelope which `isEnvelope` knows; `undefined` when what
   * `etag` names is still current. Fails with a `PromptClientError`.
   */
  send(
    target: string,
    call: Call,
    isEnvelope: (body: Untrusted) => boolean,
    etag?: string | null
  ): Promise<Answer | undefined> {
    const { fetch, baseUrl } = this.#options
    const headers = this.#headers(call, etag)
    return withLimits(call, async (signal, deadline) => {
      for (let attempt = 1; ; attempt++) {
        await this.#waitForPause(signal, deadline)
        const log = this.#logAttempt(target, attempt, signal)
        const mayRetry = (wait: number) => attempt <= call.maxRetries && now() + wait < deadline
        let wait = backoff(attempt)
        let read: (() => Answer | undefined) | undefined
        try {
          const response = await fetch(baseUrl + target, {
            method: "GET",
            headers,
            redirect: "manual",
            signal
          })
          const { status } = response
          const retryAfter = retryAfterOf(response.headers)
          if (retryAfter !== undefined) wait = Math.min(retryAfter * 1000, maxRetryAfter)
          if (status === 429) this.#pauseFor(wait, this.#requestIdOf(response))
          const discarded = signal.aborted || (isTransient(status) && mayRetry(wait))
          const text = discarded ? discard(response) : await response.text()
          log(status, this.#requestIdOf(response))
          if (text !== undefined) read = () => this.#read(response, text, retryAfter, isEnvelope, etag)
        } catch (error) {
          log()
          if (!mayRetry(wait)) {
            throw new ConnectionError(this.#redact(`No answer from the service: ${reasonOf(error)}`))
          }
        }
        if (read !== undefined) return read()
        await sleep(wait, signal)
      }
    })
  }

  #headers(call: Call, etag: string | null | undefined): Record<string, string> {
    const headers = new Headers(this.#options.headers)
    for (const [name, value] of Object.entries(call.headers ?? {})) headers.set(name, value)
    headers.set("accept", "application/json")
    headers.set("authorization", `Bearer ${this.#options.apiKey}`)
    if (etag) headers.set("if-none-match", etag)
    return Object.fromEntries(headers)
  }

  /** Waits until the pause is over, which others may prolong; fails at once where it lasts longer than the call. */
  async #waitForPause(signal: Signal, deadline: number): Promise<void> {
    for (;;) {
      const { until, requestId } = this.#pause
      const wait = until - now()
      if (wait <= 0) return
      if (until >= deadline) {
        throw apiErrorOf({
          status: 429,
          code: "RATE_LIMITED",
          message: "Rate limit exceeded",
          requestId,
          retryAfter: Math.ceil(wait / 1000)
        })
      }
      await sleep(wait, signal)
    }
  }

  #pauseFor(wait: number, requestId: string | undefined): void {
    const until = now() + wait
    if (until > this.#pause.until) this.#pause = { until, requestId }
  }

  /** What a whole answer holds, or throws the error that it is. */
  #read(
    response: FetchResponse,
    text: string,
    retryAfter: number | undefined,
    isEnvelope: (body: Untrusted) => boolean,
    etag: string | null | undefined
  ): Answer | undefined {
    const { status, headers } = response
    if (status === 304 && etag) return undefined
    const type = headers.get("content-type") ?? "without a content type"
    const body = isJson.test(type) ? parse(text) : undefined
    if (status >= 200 && status < 300 && isEnvelope(body)) {
      return { text, envelope: body, etag: headers.get("etag") }
    }
    const requestId = this.#requestIdOf(response)
    const { code, message } = body?.error ?? {}
    if (status >= 400 && typeof code === "string" && typeof message === "string") {
      throw apiErrorOf({
        status,
        code: this.#redact(code),
        message: this.#redact(message),
        requestId,
        retryAfter
      })
    }
    // A platform that hides redirects gives them the status 0.
    const isRedirect = status === 0 || (status >= 300 && status < 400 && status !== 304)
    throw new InvalidResponseError(
      isRedirect
        ? `The service answered ${status}, a redirect: set baseUrl to where it leads`
        : this.#redact(`The service answered ${status} ${type}, which is none of its answers`),
      status,
      requestId
    )
  }

  #requestIdOf(response: FetchResponse): string | undefined {
    const id = response.headers.get("x-request-id")
    return id === null ? undefined : this.#redact(id)
  }

  /** The key never shows in what is said of a request, whatever an answer or an error repeats. */
  #redact(text: string): string {
    return text.replaceAll(this.#options.apiKey, "[API key]")
  }

  #logAttempt(target: string, attempt: number, signal: Signal) {
    const start = now()
    const path = this.#redact(target.replace(/\?.*/, ""))
    return (status?: number, requestId?: string): void => {
      const { logger } = this.#options
      const failed = status === undefined ? !(signal.reason instanceof AbortError) : isTransient(status)
      const fields = { method: "GET", path, status, duration: now() - start, requestId, attempt } as const
      try {
        logger[failed ? "warn" : "debug"]?.(`GET ${path} ${status ?? "without an answer"}`, fields)
      } catch {
        // A logger that fails is no reason for a call to fail.
      }
    }
  }
}
