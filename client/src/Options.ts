import type { PromptBundle } from "./Bundle.ts"
import { readVariable } from "./Environment.ts"
import type { PromptClientError } from "./Errors.ts"
import type { Fetch, Logger } from "./transport/Fetch.ts"
import type { CallSettings, Signal } from "./transport/Limits.ts"

/** The options of a client with their defaults. Times are in milliseconds. */
export const defaultOptions = {
  apiKey: undefined,
  baseUrl: "http://127.0.0.1:3000",
  timeout: 30_000,
  maxRetries: 2,
  headers: undefined,
  fetch: ((url, init) => globalThis.fetch(url, init)) as Fetch,
  logger: {},
  cache: { ttl: 30_000, maxStale: 300_000, maxEntries: 1_000 },
  bundle: undefined,
  mode: "service-first"
} as const satisfies ClientOptions

/** The client's options that a call can override. */
interface SharedOptions {
  /** Time limit of a whole call, including retries and the waits between them, in milliseconds. Default: 30,000. */
  readonly timeout?: number | undefined
  /** Maximum number of retries of a request after a connection error, 408, 429 or 5xx. Default: 2. */
  readonly maxRetries?: number | undefined
  /**
   * Additional request headers. The headers of a call override the headers of the client. `accept` and `authorization`
   * cannot be overridden. Default: none.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Options of the cache. The default times are the times that the service allows for shared caches. */
export interface CacheOptions {
  /** How long the client returns a cached result without a request, in milliseconds. Default: 30,000. */
  readonly ttl?: number | undefined
  /**
   * How long after `ttl` the client can still return a cached result, in milliseconds. Default: 300,000. The client
   * returns such a result immediately, and refreshes the result in the background. So reads survive an outage of this
   * length.
   */
  readonly maxStale?: number | undefined
  /** Maximum number of cached results; the least recently used result is evicted first. Default: 1,000. */
  readonly maxEntries?: number | undefined
}

/** Options of a client. */
export interface ClientOptions extends SharedOptions {
  /**
   * Your API key. Logs and errors never contain the key. Default: the environment variable `PROMPT_RETRIEVAL_KEY`, if
   * the runtime has environment variables.
   */
  readonly apiKey?: string | undefined
  /**
   * URL of the service, without `/api/v1`. A path in the URL becomes a prefix of every request's path. Default: the
   * environment variable `PROMPT_RETRIEVAL_URL`, or `http://127.0.0.1:3000`.
   */
  readonly baseUrl?: string | undefined
  /** The function that sends requests. Default: `globalThis.fetch`. */
  readonly fetch?: Fetch | undefined
  /** Receives a log line for each attempt. `console` is a valid logger. Default: no logging. */
  readonly logger?: Logger | undefined
  /** Enables the cache; `{}` selects its default options. Default: no cache, so every call sends a request. */
  readonly cache?: CacheOptions | undefined
  /** A bundle that `pull` has written. `getResolved` returns its texts while the service is not available. */
  readonly bundle?: PromptBundle | undefined
  /**
   * With `service-first`, `getResolved` returns bundled texts only while the service is not available. With
   * `bundle-first`, `getResolved` returns the texts of bundled prompts without a request. Default: `service-first`.
   */
  readonly mode?: "service-first" | "bundle-first" | undefined
}

/** Options of one call. They override the options of the client. */
export interface CallOptions extends SharedOptions {
  /** Aborts the call, which then rejects with an `AbortError`. Default: none. */
  readonly signal?: Signal | undefined
}

/** Options of `getResolved`. */
export interface ResolvedOptions extends CallOptions {
  /**
   * The text to return, or a function that returns the text. A call uses the fallback if the service is not available
   * and neither the cache nor the bundle has a text. A call does not use the fallback after a 4xx other than 402, 408
   * and 429. Default: none; the call then rejects.
   */
  readonly fallback?: string | ((error: PromptClientError) => string | Promise<string>) | undefined
}

/** Options of `prefetch`. `timeout` and `maxRetries` apply to each request. */
export type PrefetchOptions = Omit<CallOptions, "headers">

/** The outcome of `prefetch`. */
export interface PrefetchResult {
  /** Number of prompts that are now in the cache. */
  readonly loaded: number
  /** The names and ids in the selection for which the service returned no prompt. */
  readonly missing: ReadonlyArray<string>
}

/** Throws a `TypeError` if an option or a parameter is unknown, for example misspelled. */
export const requireKnown = (options: object, known: object, prefix = ""): void => {
  for (const name of Object.keys(options))
    if (!Object.hasOwn(known, name)) throw new TypeError(`unknown option ${prefix}${name}`)
}

/**
 * Returns a function that reads an option or its default. The function throws a `RangeError` if the value is not an
 * integer from `minimum` to the maximum delay of a timer.
 */
const makeReadInteger =
  <Name extends string>(
    options: { readonly [N in Name]?: number | undefined },
    defaults: Readonly<Record<Name, number>>,
    prefix = ""
  ) =>
  (name: Name, minimum: number): number => {
    const { [name]: value = defaults[name] } = options
    if (Number.isInteger(value) && value >= minimum && value < 2 ** 31) return value
    throw new RangeError(`${prefix}${name} must be an integer from ${minimum} to ${2 ** 31 - 1}`)
  }

/** The options of the cache, with their defaults applied. */
export type CacheLimits = Readonly<Record<keyof CacheOptions, number>>

const toCacheLimits = (options: CacheOptions): CacheLimits => {
  const defaults = defaultOptions.cache
  requireKnown(options, defaults, "cache.")
  const readInteger = makeReadInteger(options, defaults, "cache.")
  return {
    ttl: readInteger("ttl", 0),
    maxStale: readInteger("maxStale", 0),
    maxEntries: readInteger("maxEntries", 1)
  }
}

/**
 * Returns the options of a call. `defaults` has every option that a call can have. Throws if an option is invalid or
 * unknown.
 */
export const toSettings = (options: CallOptions = {}, defaults: CallSettings): CallSettings => {
  requireKnown(options, defaults)
  const readInteger = makeReadInteger<"timeout" | "maxRetries">(options, defaults)
  const { headers, signal } = options
  return { timeout: readInteger("timeout", 1), maxRetries: readInteger("maxRetries", 0), headers, signal }
}

/** Returns the URL without trailing slashes. The error does not repeat the URL, which can contain credentials. */
const normalizeBaseUrl = (baseUrl: string): string => {
  if (!/^https?:\/\/[^/?#@]+(\/[^?#]*)?$/i.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new TypeError("baseUrl must be an http or https URL without credentials, query or fragment")
  }
  return new URL(baseUrl).href.replace(/\/+$/, "")
}

/**
 * Returns the key. Throws a `TypeError` if the key is missing or not valid in a header. The error does not repeat the
 * key.
 */
const requireApiKey = (apiKey: unknown): string => {
  if (!apiKey) throw new TypeError("apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY")
  if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey))
    throw new TypeError("apiKey contains invalid characters")
  return apiKey
}

/**
 * Returns the options that a client uses, with their defaults. Throws a `TypeError` or a `RangeError` that names an
 * invalid or unknown option.
 */
export const parseOptions = (options: ClientOptions) => {
  requireKnown(options, defaultOptions)
  const { bundle, mode = defaultOptions.mode } = options
  if (bundle !== undefined && !Array.isArray(bundle?.prompts))
    throw new TypeError("bundle must be a bundle of prompts")
  if (!(mode === "service-first" || (mode === "bundle-first" && bundle)))
    throw new TypeError("mode must be service-first, or bundle-first with a bundle")
  const { timeout, maxRetries } = options
  const baseUrl = options.baseUrl ?? readVariable("PROMPT_RETRIEVAL_URL") ?? defaultOptions.baseUrl
  return {
    apiKey: requireApiKey(options.apiKey ?? readVariable("PROMPT_RETRIEVAL_KEY")),
    baseUrl: normalizeBaseUrl(baseUrl),
    fetch: options.fetch ?? defaultOptions.fetch,
    logger: options.logger ?? defaultOptions.logger,
    call: toSettings({ timeout, maxRetries }, defaultOptions),
    limits: toCacheLimits(options.cache ?? {})
  }
}
