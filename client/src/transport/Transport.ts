import { withoutHolding } from "../Environment.ts"
import { AbortError, ConnectionError, InvalidResponseError, PromptApiError } from "../Errors.ts"
import { getStatus, isTransient } from "../Outages.ts"
import type { PromptResponse } from "../Resources.ts"
import type { UnknownJson } from "./Envelopes.ts"
import type { Fetch, FetchInit, FetchResponse, Logger } from "./Fetch.ts"
import { KeyState } from "./KeyState.ts"
import {
  type CallSettings,
  type Instant,
  now,
  readClocks,
  type Signal,
  sleep,
  subtract,
  withLimits
} from "./Limits.ts"

/** Describes the response that last confirmed a text: a 200, or a 304 with the ETag of an earlier response. */
export interface ResponseInfo extends PromptResponse {
  readonly etag: string | undefined
  /** The value of the header `Prompt-Version`. */
  readonly version: number | undefined
  readonly requestId: string | undefined
  /** The age of the text when the response arrived, in milliseconds: the value of `Age`, or 0. */
  readonly age: number
  /** When the service confirmed the text: the start of the request minus the age. */
  readonly confirmedAt: Instant
  /** `stale` if the service responded from its cache because its database was not available. */
  readonly source: "fresh" | "stale"
  /**
   * The number of the key's rejections before the request. After a further rejection, the client must not return the
   * text.
   */
  readonly rejections: number
}

/** The body of a response, and the response that last confirmed the body. */
export interface ConfirmedText {
  readonly text: string
  readonly info: ResponseInfo
}

/** A response whose body was read. The text is undefined if the body is too large. */
interface Response {
  readonly text: string | undefined
  readonly info: ResponseInfo
}

export interface TransportOptions {
  readonly apiKey: string
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: Fetch
  readonly logger: Logger
}

/** Validates headers and converts their names to lower case. Without headers, does not load Node's `Headers` (20 ms). */
export const normalizeHeaders = (headers: CallSettings["headers"]): Readonly<Record<string, string>> =>
  headers ? Object.fromEntries(new Headers(headers)) : {}

/** The longest accepted `Retry-After`, in milliseconds. The service sends at most one minute; a proxy can send more. */
const maxRetryAfterMs = 60_000

/**
 * Returns the backoff before a retry: a random time, in milliseconds, between half of the maximum and the maximum. The
 * maximum is 500 ms before the first retry and doubles with each further retry, up to 8,000 ms.
 */
const computeBackoff = (attempt: number): number =>
  (Math.min(8000, 250 * 2 ** attempt) * (1 + Math.random())) / 2

const describeCauses = (error: unknown): string => {
  const messages: Array<string> = []
  for (let cause = error; cause instanceof Error && messages.length < 5; cause = cause.cause) {
    messages.push(cause.message || (cause as { code?: string }).code || cause.name)
  }
  return messages.join(": ")
}

/** The maximum size of a body in bytes, after decompression. The service sends far less. */
const maxBodySize = 8 * 2 ** 20

/** Reads a body as UTF-8. If the body is larger than `maxBodySize`, cancels the body and returns `undefined`. */
const readBody = async (response: FetchResponse): Promise<string | undefined> => {
  const { body } = response
  if (!body?.[Symbol.asyncIterator]) return response.text()
  const decoder = new TextDecoder()
  let text = ""
  let size = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > maxBodySize) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

const parseJson = (text: string | undefined): UnknownJson => {
  try {
    return JSON.parse(text!)
  } catch {
    return undefined
  }
}

const parseCount = (value: string | null): number | undefined =>
  /^\d{1,15}$/.test(value!) ? Number(value) : undefined

/** Converts the header `Age` to milliseconds. A missing or invalid value becomes 0. */
const parseAge = (value: string | null): number => Math.max(Number.parseInt(value!, 10) || 0, 0) * 1000

/** Matches the `Cache-Status` (RFC 9211) of a response that the service sends while its database is not available. */
const servedStalePattern = /(^|,)\s*"?prompt-retrieval"?\s*;[^,]*database-unavailable/

/** Sends authenticated requests and retries transient failures within the call's limits. */
export class Transport {
  readonly #options: TransportOptions
  key: KeyState = new KeyState()

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /**
   * Requests a target (path and query). The body of the response must satisfy `isEnvelope`. If a 304 confirms the
   * previous text, returns this text. Rejects with a `PromptClientError` if no attempt succeeds.
   */
  send(
    target: string,
    settings: CallSettings,
    isEnvelope: (body: UnknownJson) => boolean,
    previous?: ConfirmedText
  ): Promise<ConfirmedText> {
    const etag = previous?.info.etag
    const headers = {
      ...this.#options.headers,
      ...normalizeHeaders(settings.headers),
      accept: "application/json",
      authorization: `Bearer ${this.#options.apiKey}`,
      ...(etag && { "if-none-match": etag })
    }
    const deadline = now() + settings.timeout
    const run = async (signal: Signal) => {
      for (let attempt = 1; ; attempt++) {
        while (this.key.getDelay(deadline) > 0) {
          this.#log(true, target, "waits for the rate limit", attempt, now())
          await sleep(this.key.getDelay(deadline), signal, settings)
        }
        try {
          const init = { method: "GET", headers, redirect: "manual", signal } as const
          const response = await this.#fetch(target, init, attempt, settings)
          const { info } = response
          if (info.status !== 304 || !etag) return { text: this.#parse(response, isEnvelope), info }
          const version = info.version ?? previous!.info.version
          return { text: previous!.text, info: { ...info, etag: info.etag ?? etag, version } }
        } catch (error) {
          const status = getStatus(error)
          const { retryAfter, requestId } = error as PromptApiError
          const delay =
            retryAfter === undefined ? computeBackoff(attempt) : Math.min(retryAfter * 1000, maxRetryAfterMs)
          if (status === 429) this.key.pause(delay, requestId)
          const isTooLate = attempt > settings.maxRetries || now() + delay >= deadline
          if (isTooLate || !(error instanceof ConnectionError || isTransient(status!))) throw error
          await sleep(delay, signal, settings)
        }
      }
    }
    return this.key.observe(() => withLimits(settings, run))
  }

  /** Sends one request, reads the body of the response and logs the outcome. */
  async #fetch(
    target: string,
    init: FetchInit,
    attempt: number,
    { isBackground }: CallSettings
  ): Promise<Response> {
    const { baseUrl, fetch } = this.#options
    const url = baseUrl + target
    const { rejections } = this.key
    const sentAt = readClocks()
    try {
      const request = () => fetch(url, init)
      const response = await (isBackground ? withoutHolding(url, request) : request())
      const text = await readBody(response)
      const info = this.#describe(response, sentAt, rejections)
      this.#log(isTransient(info.status), target, info.status, attempt, sentAt[0], info)
      return { text, info }
    } catch (error) {
      this.#log(!(init.signal.reason instanceof AbortError), target, "without a response", attempt, sentAt[0])
      throw new ConnectionError(this.#redact(`No response from ${baseUrl}: ${describeCauses(error)}`))
    }
  }

  #log(
    isWarning: boolean,
    target: string,
    outcome: string | number,
    attempt: number,
    start: number,
    { status, requestId }: Partial<ResponseInfo> = {}
  ): void {
    const path = this.#redact(target.replace(/\?.*/, ""))
    const fields = { method: "GET", path, status, duration: now() - start, requestId, attempt } as const
    try {
      this.#options.logger[isWarning ? "warn" : "debug"]?.(`GET ${path} ${outcome}`, fields)
    } catch {
      // An error in the logger must not fail the call.
    }
  }

  /** Returns the text, or throws the error that the response represents. */
  #parse({ text, info }: Response, isEnvelope: (body: UnknownJson) => boolean): string {
    const { status, headers, requestId } = info
    const body = parseJson(text)
    if (status >= 200 && status < 300 && isEnvelope(body)) return text!
    const { code, message } = body?.error ?? {}
    const isUnknownPath = status === 404 && message === "Route not found"
    const details = { status, requestId, retryAfter: parseCount(headers.get("retry-after")) }
    if (status >= 400 && typeof code === "string" && typeof message === "string" && !isUnknownPath)
      throw PromptApiError.from({
        ...details,
        code: this.#redact(code),
        message: this.#redact(message)
      })
    // If `fetch` does not follow a redirect, browsers report the status 0.
    const isRedirect = status === 0 || (status >= 300 && status < 400 && status !== 304)
    const reason = isUnknownPath
      ? "Route not found; check baseUrl"
      : isRedirect
        ? "redirect; set baseUrl to its target"
        : text === undefined
          ? "with a body of more than 8 MiB"
          : (headers.get("content-type") ?? "without a content type")
    throw new InvalidResponseError({
      ...details,
      message: this.#redact(`Unexpected response: ${status} ${reason}`)
    })
  }

  #describe({ status, headers }: FetchResponse, sentAt: Instant, rejections: number): ResponseInfo {
    const age = parseAge(headers.get("age"))
    return {
      status,
      headers,
      etag: headers.get("etag") ?? undefined,
      version: parseCount(headers.get("prompt-version")),
      requestId: this.#redact(headers.get("x-request-id") ?? "") || undefined,
      age,
      confirmedAt: subtract(sentAt, age),
      source: servedStalePattern.test(headers.get("cache-status") ?? "") ? "stale" : "fresh",
      rejections
    }
  }

  /** Removes the API key from a text. A response or an error message can repeat the key. */
  #redact(text: string): string {
    return text.replaceAll(this.#options.apiKey, "[API key]")
  }
}
