import type { Signal } from "./Limits.ts"

/** The options that the client passes to `fetch`. */
export interface FetchInit {
  /** Always GET, because the client only reads. */
  readonly method: "GET"
  /** The headers by lowercase name. They include the API key. */
  readonly headers: Record<string, string>
  /** `fetch` must not follow redirects, because a redirect can carry the API key to another host. */
  readonly redirect: "manual"
  /** The signal is aborted when the call times out or the caller aborts the call. */
  readonly signal: Signal
}

/** The part of `Response` that the client uses. */
export interface FetchResponse {
  readonly status: number
  /** The names are case-insensitive. */
  readonly headers: { get(name: string): string | null }
  /** The client reads at most 8 MiB of an iterable body. */
  readonly body: { cancel(): Promise<void>; [Symbol.asyncIterator]?(): AsyncIterator<Uint8Array> } | null
  /** Reads the body as UTF-8. The client calls `text` only if the body is not iterable. */
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
  /** Duration of the attempt, in milliseconds. */
  readonly duration: number
  /** The response's `X-Request-Id`, if any. */
  readonly requestId: string | undefined
  /** Number of the attempt, starting at 1. */
  readonly attempt: number
}

/**
 * Receives one line for each attempt: `warn` after a connection error, a timeout, 408, 429 or 5xx, otherwise `debug`.
 * Also receives one line (`warn`) when a call waits because another call's 429 has started a pause. `console` is a valid
 * logger. The client ignores exceptions of a logger.
 */
export interface Logger {
  debug?(message: string, fields: LogFields): void
  warn?(message: string, fields: LogFields): void
}
