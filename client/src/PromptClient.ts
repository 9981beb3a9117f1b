import { Cache, type CacheOptions } from "./Cache.ts"
import type { CallSettings, Signal } from "./Limits.ts"
import type {
  ListParams,
  Page,
  PageParams,
  Prompt,
  PromptSummary,
  ResolvedPrompt,
  Single,
  Source,
  Version,
  VersionSummary
} from "./Resources.ts"
import { type Fetch, type Logger, Transport, type UnknownJson } from "./Transport.ts"

/** The defaults of the options, with times in milliseconds. */
export const defaultOptions = {
  baseUrl: "http://127.0.0.1:3000",
  timeout: 30_000,
  maxRetries: 2,
  cache: { ttl: 30_000, maxStale: 300_000, maxEntries: 1_000 }
} as const

/** Options of the client that a call may override. */
interface SharedOptions {
  /** Time limit of a whole call, including retries and the waits between them, in milliseconds. Default: 30,000. */
  readonly timeout?: number | undefined
  /** How many times a request is retried after a connection error, 408, 429 or 5xx. Default: 2. */
  readonly maxRetries?: number | undefined
  /**
   * Additional request headers; a call's headers override the client's. `accept` and `authorization` cannot be
   * overridden. Default: none.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Options of a client. */
export interface ClientOptions extends SharedOptions {
  /** Your API key. Never logged or included in errors. */
  readonly apiKey: string
  /**
   * URL of the service, without `/api/v1`. A path is kept as a prefix of every request's path.
   * Default: `http://127.0.0.1:3000`.
   */
  readonly baseUrl?: string | undefined
  /** Used instead of the global `fetch`. Default: `globalThis.fetch`. */
  readonly fetch?: Fetch | undefined
  /** Receives a log line for each attempt. `console` is a valid logger. Default: no logging. */
  readonly logger?: Logger | undefined
  /** Enables the cache; `{}` uses its defaults. Default: no cache, so every call sends a request. */
  readonly cache?: CacheOptions | undefined
}

/** Options of one call, which override the client's. */
export interface CallOptions extends SharedOptions {
  /** Aborts the call, which then rejects with an `AbortError`. Default: none. */
  readonly signal?: Signal | undefined
}

/**
 * A list, to be awaited for one page or iterated for all items from that page on.
 *
 * Iteration requests one page at a time; each page is a separate call with its own timeout. If the list changes
 * during iteration, no item is returned twice, but an item that moves to an earlier page may be missed.
 */
export interface List<A> extends Promise<Page<A>>, AsyncIterable<A> {}

/** Calls that read the versions of a prompt. */
export interface Versions {
  /**
   * Lists a prompt's versions, newest first, without their content.
   *
   * @example
   * ```ts
   * import { PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…" })
   * for await (const version of client.prompts.versions.list("cef02dd3-514f-5723-8852-d3305a2e66a8")) {
   *   const line: string = `${version.version_number}: ${version.change_summary}`
   * }
   * ```
   */
  list(promptId: string, params?: PageParams, options?: CallOptions): List<VersionSummary>
  /**
   * Gets one version of a prompt. Rejects with a `NotFoundError` if the prompt has no such version.
   *
   * @example
   * ```ts
   * import { PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…" })
   * const { data } = await client.prompts.versions.get("cef02dd3-514f-5723-8852-d3305a2e66a8", 3)
   * const content: string = data.content
   * ```
   */
  get(promptId: string, version: number, options?: CallOptions): Promise<Single<Version>>
}

/**
 * Calls that read the prompts of the key's workspace. They reject with a `PromptClientError`, or with a `TypeError` or
 * `RangeError` if an argument is invalid.
 */
export interface Prompts {
  /**
   * Lists prompts, most recently updated first, without archived prompts.
   *
   * @example
   * ```ts
   * import { PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…" })
   * const { data, meta } = await client.prompts.list({ page: 1, per_page: 50, tag: "production" })
   * const shown: string = `${data.length} of ${meta.total}`
   * for await (const summary of client.prompts.list({ type: "system", per_page: 100 })) {
   *   const title: string = summary.title
   * }
   * ```
   */
  list(params?: ListParams, options?: CallOptions): List<PromptSummary>
  /**
   * Gets one prompt. Rejects with a `NotFoundError` if the workspace has no prompt with this id.
   *
   * @example
   * ```ts
   * import { NotFoundError, PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…" })
   * try {
   *   const { data } = await client.prompts.get("cef02dd3-514f-5723-8852-d3305a2e66a8")
   *   const content: string = data.current_content
   * } catch (error) {
   *   if (!(error instanceof NotFoundError)) throw error
   * }
   * ```
   */
  get(id: string, options?: CallOptions): Promise<Single<Prompt>>
  /**
   * Gets one prompt with its fragments appended. Rejects with a `NotFoundError` if the workspace has no prompt with
   * this id.
   *
   * @example
   * ```ts
   * import { fillSlots, PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…", cache: {} })
   * const { data } = await client.prompts.getResolved("cef02dd3-514f-5723-8852-d3305a2e66a8", { timeout: 2_000 })
   * const text: string = fillSlots(data.resolved_content, { shop: "Acme" })
   * ```
   */
  getResolved(id: string, options?: CallOptions): Promise<Single<ResolvedPrompt>>
  /** Calls that read the versions of a prompt. */
  readonly versions: Versions
}

/** Returns an integer between `minimum` and the maximum delay of a timer. */
const requireInteger = (name: string, value: number, minimum: number): number => {
  if (Number.isInteger(value) && value >= minimum && value < 2 ** 31) return value
  throw new RangeError(`${name} must be an integer from ${minimum} to ${2 ** 31 - 1}`)
}

/** Returns the URL without trailing slashes. The error does not repeat the URL, which may contain credentials. */
const normalizeBaseUrl = (baseUrl: string): string => {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new TypeError("baseUrl must be an http or https URL without credentials, query or fragment")
  }
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, "")}`
}

/** Returns the key if a header can carry it. The errors do not repeat the key. */
const requireApiKey = (apiKey: unknown): string => {
  if (apiKey === undefined || apiKey === null || apiKey === "") throw new TypeError("apiKey is missing")
  if (typeof apiKey !== "string") throw new TypeError("apiKey must be a string")
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError("apiKey contains invalid characters")
  return apiKey
}

const toPromptPath = (id: string): string => {
  // A URL parser removes empty, "." and ".." segments, so the request would have another path.
  if (typeof id !== "string" || /^\.{0,2}$/.test(id)) throw new TypeError("id must be a prompt id")
  return `/api/v1/prompts/${encodeURIComponent(id.toWellFormed())}`
}

/** Renders the defined parameters in alphabetical order, so that equal queries share a cache entry. */
const toQuery = (params: object): string => {
  const defined = Object.entries(params).filter(([, value]) => value !== undefined)
  return defined.length > 0 ? `?${new URLSearchParams(defined.sort())}` : ""
}

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isSingleEnvelope = (body: UnknownJson): boolean => isObject(body?.data)

const isPageEnvelope = (body: UnknownJson): boolean =>
  Array.isArray(body?.data) &&
  body.data.every(isObject) &&
  [body.meta?.page, body.meta?.per_page, body.meta?.total].every(Number.isInteger) &&
  body.meta.per_page > 0

/** Headers that identify the request or the caller and never change the response. Any other header bypasses the cache. */
const cacheNeutralHeaders = /^(x-request-id|traceparent|tracestate|baggage|user-agent)$/i

/** Adds `source` to an envelope as a property that is not enumerable. */
const withSource = (envelope: unknown, source: Source): unknown =>
  Object.defineProperty(envelope as object, "source", { value: source })

/**
 * A client of the prompt-retrieval API. It has no dependencies, holds no connections and does not need to be closed.
 *
 * The constructor throws a `TypeError` or `RangeError` that names the invalid option.
 *
 * After a 429, the client delays all its calls until the time in `Retry-After` has passed. A call whose timeout would
 * expire before that rejects immediately with a `RateLimitedError`, without sending a request.
 *
 * @example
 * ```ts
 * import { PromptClient } from "@prompt-retrieval/client"
 *
 * const client = new PromptClient({
 *   apiKey: "key_live_…",
 *   baseUrl: "https://prompts.example.com",
 *   logger: console,
 *   cache: { ttl: 30_000, maxStale: 3_600_000, maxEntries: 500 }
 * })
 * ```
 */
export class PromptClient {
  readonly #transport: Transport
  readonly #cache: Cache | undefined
  readonly #defaults: CallSettings

  constructor(options: ClientOptions) {
    const { timeout = defaultOptions.timeout, maxRetries = defaultOptions.maxRetries, cache } = options
    this.#defaults = {
      timeout: requireInteger("timeout", timeout, 1),
      maxRetries: requireInteger("maxRetries", maxRetries, 0)
    }
    this.#transport = new Transport({
      apiKey: requireApiKey(options.apiKey),
      baseUrl: normalizeBaseUrl(options.baseUrl ?? defaultOptions.baseUrl),
      headers: Object.fromEntries(new Headers(options.headers)),
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
      logger: options.logger ?? {}
    })
    if (cache === undefined) return
    const defaults = defaultOptions.cache
    const { ttl = defaults.ttl, maxStale = defaults.maxStale, maxEntries = defaults.maxEntries } = cache
    this.#cache = new Cache(
      {
        ttl: requireInteger("cache.ttl", ttl, 0),
        maxStale: requireInteger("cache.maxStale", maxStale, 0),
        maxEntries: requireInteger("cache.maxEntries", maxEntries, 1)
      },
      this.#defaults
    )
  }

  /** Calls that read the prompts of the key's workspace. */
  readonly prompts: Prompts = {
    list: (params, options) => this.#list(() => "/api/v1/prompts", params, options),
    get: async (id, options) => this.#read(toPromptPath(id), isSingleEnvelope, options),
    getResolved: async (id, options) => this.#read(`${toPromptPath(id)}/resolved`, isSingleEnvelope, options),
    versions: {
      list: (id, params, options) => this.#list(() => `${toPromptPath(id)}/versions`, params, options),
      get: async (id, version, options) =>
        this.#read(`${toPromptPath(id)}/versions/${encodeURIComponent(version)}`, isSingleEnvelope, options)
    }
  }

  /** `path` is a function so that an invalid id rejects the list instead of throwing. */
  #list<A>(path: () => string, params: PageParams = {}, options?: CallOptions): List<A> {
    const readPage = async (page: number | undefined) =>
      this.#read<Page<A>>(path() + toQuery({ ...params, page }), isPageEnvelope, options)
    const firstPage = readPage(params.page)
    return Object.assign(firstPage, {
      async *[Symbol.asyncIterator]() {
        const seen = new Set<unknown>()
        for (let page = await firstPage, number = params.page ?? 1; ; page = await readPage(++number)) {
          for (const item of page.data) {
            const { id, version_number } = item as { id?: string; version_number?: number }
            const identity = id ?? version_number
            if (!seen.has(identity)) yield item
            seen.add(identity)
          }
          if (page.data.length === 0 || number * page.meta.per_page >= page.meta.total) return
        }
      }
    })
  }

  async #read<E>(
    target: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options: CallOptions = {}
  ): Promise<E> {
    const { timeout = this.#defaults.timeout, maxRetries = this.#defaults.maxRetries, headers = {} } = options
    const settings: CallSettings = {
      timeout: requireInteger("timeout", timeout, 1),
      maxRetries: requireInteger("maxRetries", maxRetries, 0),
      headers,
      signal: options.signal
    }
    const send = (settings: CallSettings, etag?: string | null) =>
      this.#transport.send(target, settings, isEnvelope, etag)
    if (this.#cache === undefined || !Object.keys(headers).every((name) => cacheNeutralHeaders.test(name))) {
      return withSource((await send(settings))!.envelope, "fresh") as E
    }
    const { text, source } = await this.#cache.read(target, settings, send)
    return withSource(JSON.parse(text), source) as E
  }
}
