import { getElapsed, readClocks } from "./Age.ts"
import type { PromptBundle } from "./Bundle.ts"
import { BundledPrompts } from "./BundledPrompts.ts"
import { Cache, type CacheOptions, type CacheResult, type Loader, toEntry } from "./Cache.ts"
import { readVariable } from "./Environment.ts"
import { isOutage, type PromptClientError } from "./Errors.ts"
import { KeyStatus } from "./KeyStatus.ts"
import { type CallSettings, type Signal, withLimits } from "./Limits.ts"
import { loadAll, type PrefetchProgress, type PrefetchResult, respectRateLimit } from "./Prefetch.ts"
import type { PromptReference, ResolvedFor } from "./PromptReference.ts"
import type {
  ListParams,
  Page,
  PageParams,
  Prompt,
  PromptResponse,
  PromptSummary,
  ResolvedPrompt,
  Single,
  Source,
  Version,
  VersionSummary
} from "./Resources.ts"
import { type Call, toBundledResult, toCall, toFallbackResult, toResult } from "./Results.ts"
import { type Fetch, type Logger, normalizeHeaders, Transport, type UnknownJson } from "./Transport.ts"

/** The defaults of the options, with times in milliseconds. */
export const defaultOptions = {
  baseUrl: "http://127.0.0.1:3000",
  timeout: 30_000,
  maxRetries: 2,
  concurrency: 4,
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
  /**
   * Your API key. Never logged or included in errors. Default: the environment variable `PROMPT_RETRIEVAL_KEY`,
   * where the runtime has one.
   */
  readonly apiKey?: string | undefined
  /**
   * URL of the service, without `/api/v1`. A path is kept as a prefix of every request's path.
   * Default: the environment variable `PROMPT_RETRIEVAL_URL`, or `http://127.0.0.1:3000`.
   */
  readonly baseUrl?: string | undefined
  /** Used instead of the global `fetch`. Default: `globalThis.fetch`. */
  readonly fetch?: Fetch | undefined
  /** Receives a log line for each attempt. `console` is a valid logger. Default: no logging. */
  readonly logger?: Logger | undefined
  /** Enables the cache; `{}` uses its defaults. Default: no cache, so every call sends a request. */
  readonly cache?: CacheOptions | undefined
  /** A bundle that `pull` has written. `getResolved` returns its texts while the service is not available. */
  readonly bundle?: PromptBundle | undefined
  /**
   * `service-first` reads the bundle only while the service is not available. `bundle-first` reads prompts that the
   * bundle contains from the bundle, without a request. Default: `service-first`.
   */
  readonly mode?: "service-first" | "bundle-first" | undefined
}

/** Options of one call, which override the client's. */
export interface CallOptions extends SharedOptions {
  /** Aborts the call, which then rejects with an `AbortError`. Default: none. */
  readonly signal?: Signal | undefined
}

/** Options of `getResolved`. */
export interface ResolvedOptions extends CallOptions {
  /**
   * The text to return if the service is not available and the bundle does not contain the prompt, or a function that
   * returns the text and is called only then. Never used after a 401, 403, 404 or another error that the service
   * decided on. Default: none, so that the call rejects.
   */
  readonly fallback?: string | ((error: PromptClientError) => string | Promise<string>) | undefined
}

/** Selects the prompts to prefetch. Filters are combined with AND; `{}` selects all prompts. */
export type PrefetchFilter = Omit<ListParams, keyof PageParams>

/** Options of `prefetch`. `timeout` and `maxRetries` apply to each request. */
export interface PrefetchOptions {
  /** Maximum number of requests at a time. Default: 4. */
  readonly concurrency?: number | undefined
  /** Called after each prompt. */
  readonly onProgress?: ((progress: PrefetchProgress) => void) | undefined
  /** Time limit of a request, including its retries, in milliseconds. Default: the client's. */
  readonly timeout?: number | undefined
  /** How many times a request is retried. Default: the client's. */
  readonly maxRetries?: number | undefined
  /** Aborts the prefetch, which then rejects with an `AbortError`. Default: none. */
  readonly signal?: Signal | undefined
}

/**
 * A list, to be awaited for one page or iterated for all items from that page on.
 *
 * Iteration requests one page at a time; each page is a separate call with its own timeout. If the list changes
 * during iteration, no item is returned twice, but an item that moves to an earlier page may be missed.
 *
 * A list of more pages than the key may request per minute, 100 by default, needs a `timeout` of more than a minute,
 * such as 70,000: a call then waits for the next minute instead of rejecting with a `RateLimitedError`.
 */
export interface List<A> extends Call<Page<A>>, AsyncIterable<A> {}

/** Calls that read the versions of a prompt. */
export interface Versions {
  /**
   * Lists a prompt's versions, highest number first, without their content.
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
  get(promptId: string, version: number, options?: CallOptions): Call<Single<Version>>
}

/**
 * Calls that read the prompts of the key's workspace. They reject with a `PromptClientError`, or with a `TypeError`
 * or `RangeError` if an argument is invalid.
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
  get(id: string, options?: CallOptions): Call<Single<Prompt>>
  /**
   * Gets one prompt with its fragments appended, by its id or by a constant that `pull` has generated. Rejects with a
   * `NotFoundError` if the workspace has no prompt with this id.
   *
   * While the service is not available, the call resolves to the cached text, to the text in the bundle or to the
   * `fallback`, in this order; `source` says which. After a 401 or 403, it rejects: a revoked key gets no text.
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
  getResolved<const Reference extends string | PromptReference>(
    prompt: Reference,
    options?: ResolvedOptions
  ): Call<Single<ResolvedFor<Reference>, Source>, PromptResponse | undefined>
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
  if (apiKey === undefined || apiKey === null || apiKey === "")
    throw new TypeError("apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY")
  if (typeof apiKey !== "string") throw new TypeError("apiKey must be a string")
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError("apiKey contains invalid characters")
  return apiKey
}

/** Returns the id of a prompt, which may be given as a reference. */
const toId = (prompt: string | PromptReference): string =>
  typeof prompt === "object" && prompt !== null ? prompt.id : prompt

const toPromptPath = (id: string): string => {
  // A URL parser removes empty, "." and ".." segments, so the request would have another path.
  if (typeof id !== "string" || /^\.{0,2}$/.test(id)) throw new TypeError("id must be a prompt id")
  return `/api/v1/prompts/${encodeURIComponent(id.toWellFormed())}`
}

/** Renders the defined parameters in alphabetical order, so that equal queries share a cache entry. */
const toQuery = (params: object): string => {
  const defined = Object.entries(params).filter(([, value]) => value !== undefined)
  return defined.length ? `?${new URLSearchParams(defined.sort())}` : ""
}

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isSingleEnvelope = (body: UnknownJson): boolean => isObject(body?.data)

const isPageEnvelope = (body: UnknownJson): boolean =>
  Array.isArray(body?.data) &&
  body.data.every(isObject) &&
  [body.meta?.page, body.meta?.per_page, body.meta?.total].every(Number.isInteger) &&
  body.meta.per_page > 0

/** Checks the options that name the bundle. */
const requireMode = ({ mode = "service-first", bundle }: ClientOptions): void => {
  if (bundle !== undefined && !Array.isArray(bundle?.prompts))
    throw new TypeError("bundle must be a bundle of prompts")
  if (mode === "service-first" || (mode === "bundle-first" && bundle !== undefined)) return
  throw new TypeError("mode must be service-first, or bundle-first with a bundle")
}

/** Headers that identify the request or the caller and never change the response. Any other header bypasses the cache. */
const cacheNeutralHeaders = /^(x-request-id|traceparent|tracestate|baggage|user-agent)$/i

/** Returns the version that the body of a prompt or a version names. */
const findVersion = ({ data }: UnknownJson): number | undefined => data.current_version ?? data.version_number

/** Returns the envelope of a read, with the details of where it comes from. */
const toServiceResult = <E>({ text, info, confirmedAt, source }: CacheResult, envelope?: unknown): E => {
  const parsed = (envelope ?? JSON.parse(text)) as object
  const { etag, requestId, status, headers } = info
  return toResult(parsed, {
    source,
    version: info.version ?? findVersion(parsed),
    etag,
    age: Math.round(getElapsed(confirmedAt)),
    requestId,
    response: { status, headers }
  })
}

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
  readonly #options: ClientOptions
  readonly #transport: Transport
  readonly #defaults: CallSettings
  /** Identifies what clients of `withOptions` share: the service and the key. */
  readonly #account: string
  #keyStatus = new KeyStatus()
  #cache: Cache | undefined
  #bundle: BundledPrompts | undefined

  constructor(options: ClientOptions = {}) {
    const {
      timeout = defaultOptions.timeout,
      maxRetries = defaultOptions.maxRetries,
      cache,
      bundle
    } = options
    const baseUrl = options.baseUrl ?? readVariable("PROMPT_RETRIEVAL_URL")
    this.#options = options
    this.#defaults = {
      timeout: requireInteger("timeout", timeout, 1),
      maxRetries: requireInteger("maxRetries", maxRetries, 0)
    }
    const account = {
      apiKey: requireApiKey(options.apiKey ?? readVariable("PROMPT_RETRIEVAL_KEY")),
      baseUrl: normalizeBaseUrl(baseUrl ?? defaultOptions.baseUrl)
    }
    this.#account = `${account.baseUrl} ${account.apiKey}`
    this.#transport = new Transport({
      ...account,
      isDefaultUrl: baseUrl === undefined,
      headers: normalizeHeaders(options.headers),
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
      logger: options.logger ?? {}
    })
    requireMode(options)
    if (bundle !== undefined) this.#bundle = new BundledPrompts(bundle)
    if (cache === undefined) return
    const defaults = defaultOptions.cache
    const { ttl = defaults.ttl, maxStale = defaults.maxStale, maxEntries = defaults.maxEntries } = cache
    this.#cache = new Cache({
      ttl: requireInteger("cache.ttl", ttl, 0),
      maxStale: requireInteger("cache.maxStale", maxStale, 0),
      maxEntries: requireInteger("cache.maxEntries", maxEntries, 1)
    })
  }

  /** Calls that read the prompts of the key's workspace. */
  readonly prompts: Prompts = {
    list: (params, options) => this.#list(() => "/api/v1/prompts", params, options),
    get: (id, options) => toCall(this.#read(() => toPromptPath(id), isSingleEnvelope, options)),
    getResolved: (prompt, options) => toCall(this.#getResolved(toId(prompt), options)),
    versions: {
      list: (id, params, options) => this.#list(() => `${toPromptPath(id)}/versions`, params, options),
      get: (id, version, options) =>
        toCall(
          this.#read(
            () => `${toPromptPath(id)}/versions/${encodeURIComponent(version)}`,
            isSingleEnvelope,
            options
          )
        )
    }
  }

  /**
   * Returns a client with other options. Options that are absent stay; `undefined` sets the default. A client of the
   * same key and service shares what a 401, 403 or 429 means for both and, unless `cache`, `fetch` or `headers` differ,
   * the cache.
   *
   * @example
   * ```ts
   * import { PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…", cache: {} })
   * const impatient = client.withOptions({ timeout: 500, maxRetries: 0 })
   * ```
   */
  withOptions(options: ClientOptions): PromptClient {
    const client = new PromptClient({ ...this.#options, ...options })
    if (client.#account !== this.#account) return client
    client.#transport.pause = this.#transport.pause
    client.#keyStatus = this.#keyStatus
    if (client.#options.bundle === this.#options.bundle) client.#bundle = this.#bundle
    const names = ["cache", "fetch", "headers"] as const
    if (names.every((name) => client.#options[name] === this.#options[name])) client.#cache = this.#cache
    return client
  }

  /**
   * Loads resolved prompts into the cache: those with the given ids, or all that match a filter. Waits whenever the
   * rate limit is exceeded, so that 1,000 prompts take about 10 minutes with the default limit of 100 per minute.
   *
   * Resolves to the number of loaded prompts and the failures; an outage does not make it reject. Rejects if the key
   * is rejected, if the list cannot be read, if the client has no cache (`TypeError`), or if the cache is smaller than
   * the selection (`RangeError`).
   *
   * @example
   * ```ts
   * import { PromptClient } from "@prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…", cache: {} })
   * const { loaded, failures } = await client.prefetch({ tag: "production" }, { concurrency: 2 })
   * const line: string = `${loaded} loaded, ${failures.length} failed`
   * ```
   */
  async prefetch(
    selection: PrefetchFilter | ReadonlyArray<string | PromptReference>,
    options: PrefetchOptions = {}
  ): Promise<PrefetchResult> {
    const { concurrency = defaultOptions.concurrency, onProgress, ...limits } = options
    const { maxEntries = defaultOptions.cache.maxEntries } = this.#options.cache ?? {}
    if (this.#cache === undefined) throw new TypeError("prefetch needs the option cache")
    requireInteger("concurrency", concurrency, 1)
    this.#cache.resume()
    const requireRoom = (total: number) => {
      if (total > maxEntries)
        throw new RangeError(`cache.maxEntries is less than the ${total} prompts selected`)
    }
    const load = (id: string) => this.#read(() => `${toPromptPath(id)}/resolved`, isSingleEnvelope, limits)
    // The prefetch as a whole has no time limit.
    return withLimits({ signal: options.signal }, async (signal) => {
      const ids = new Set<string>()
      if (Array.isArray(selection)) {
        for (const prompt of selection) ids.add(toId(prompt))
      } else {
        const { prompts } = this.withOptions({ cache: undefined })
        const params = { ...selection, per_page: 100 }
        for (let page = 1, isLast = false; !isLast; page++) {
          const { data, meta } = await respectRateLimit(signal, () =>
            prompts.list({ ...params, page }, limits)
          )
          requireRoom(meta.total)
          for (const { id } of data) ids.add(id)
          isLast = data.length === 0 || page * meta.per_page >= meta.total
        }
      }
      requireRoom(ids.size)
      return loadAll([...ids], load, { concurrency, onProgress, signal })
    })
  }

  /** `path` is a function so that an invalid id rejects the list instead of throwing. */
  #list<A>(path: () => string, params: PageParams = {}, options?: CallOptions): List<A> {
    const readPage = (page: number | undefined) =>
      this.#read<Page<A>>(() => path() + toQuery({ ...params, page }), isPageEnvelope, options)
    const firstPage = readPage(params.page)
    return Object.assign(toCall<Page<A>, PromptResponse>(firstPage), {
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

  /** Reads a resolved prompt from the service or the cache, otherwise from the bundle, otherwise the fallback. */
  async #getResolved<E>(id: string, options: ResolvedOptions = {}): Promise<E> {
    const path = `${toPromptPath(id)}/resolved`
    const isBundleFirst = this.#options.mode === "bundle-first" && !options.signal?.aborted
    if (isBundleFirst && !this.#keyStatus.isRejected) {
      const bundled = await this.#findBundled(id)
      if (bundled) return bundled as E
    }
    try {
      return await this.#read<E>(() => path, isSingleEnvelope, options)
    } catch (error) {
      // A revoked key must not get a text, even if the service is down by now.
      if (!isOutage(error) || this.#keyStatus.isRejected) throw error
      const bundled = await this.#findBundled(id)
      if (bundled) return bundled as E
      const { fallback } = options
      if (fallback === undefined) throw error
      return toFallbackResult(id, typeof fallback === "function" ? await fallback(error) : fallback) as E
    }
  }

  async #findBundled(id: string): Promise<Single<ResolvedPrompt, Source> | undefined> {
    const prompt = await this.#bundle?.find(id)
    return prompt && toBundledResult(prompt)
  }

  async #read<E>(
    path: () => string,
    isEnvelope: (body: UnknownJson) => boolean,
    options: CallOptions = {}
  ): Promise<E> {
    const target = path()
    const { timeout = this.#defaults.timeout, maxRetries = this.#defaults.maxRetries, headers } = options
    const settings: CallSettings = {
      timeout: requireInteger("timeout", timeout, 1),
      maxRetries: requireInteger("maxRetries", maxRetries, 0),
      headers,
      signal: options.signal
    }
    const send: Loader = (settings, etag) =>
      this.#keyStatus.observe(() => this.#transport.send(target, settings, isEnvelope, etag))
    if (
      this.#cache === undefined ||
      !Object.keys(headers ?? {}).every((name) => cacheNeutralHeaders.test(name))
    ) {
      const requestedAt = readClocks()
      const response = await send(settings)
      const source = response.info.isServedStale ? "stale" : "fresh"
      return toServiceResult({ ...toEntry(response, requestedAt), source }, response.envelope)
    }
    this.#cache.evictAfter(this.#keyStatus.rejections)
    return toServiceResult(await this.#cache.read(target, settings, this.#defaults, send))
  }
}
