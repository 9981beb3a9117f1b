import { readClocks } from "./cache/Age.ts"
import { BundledPrompts } from "./BundledPrompts.ts"
import { Cache, isCacheable, type Loader, toEntry } from "./cache/Cache.ts"
import { isPageEnvelope, isSingleEnvelope, toQuery, toServiceResult } from "./transport/Envelopes.ts"
import { readVariable } from "./Environment.ts"
import { isOutage, NotFoundError } from "./Errors.ts"
import { readList } from "./ListReader.ts"
import { KeyStatus } from "./transport/KeyStatus.ts"
import { type CallSettings, withLimits } from "./transport/Limits.ts"
import { isId, PromptNames, toName } from "./PromptNames.ts"
import {
  type CallOptions,
  type ClientOptions,
  defaultOptions,
  normalizeBaseUrl,
  type PrefetchFilter,
  type PrefetchOptions,
  requireApiKey,
  requireInteger,
  requireMode,
  type ResolvedOptions
} from "./Options.ts"
import { loadAll, type PrefetchResult, respectRateLimit } from "./cache/Prefetch.ts"
import type { PromptReference } from "./PromptReference.ts"
import type { List, Prompts } from "./Prompts.ts"
import type { PromptSummary } from "./Resources.ts"
import { toCall, toFallbackResult } from "./Results.ts"
import { normalizeHeaders, Transport, type UnknownJson } from "./transport/Transport.ts"

const promptsPath = "/api/v1/prompts"

/**
 * A client of the prompt-retrieval API. It has no dependencies, holds no connections and does not need to be closed.
 * The constructor throws a `TypeError` or `RangeError` that names the invalid option.
 *
 * After a 429, the client delays all its requests until the time in `Retry-After` has passed. If the timeout of a call
 * would expire before the delay ends, the call rejects immediately with a `RateLimitedError` and sends no request.
 *
 * @example
 * ```ts
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
  #defaults: CallSettings = defaultOptions
  /**
   * Identifies the service and the key. A client that `withOptions` creates shares state only if it has the same
   * account.
   */
  readonly #account: string
  #keyStatus = new KeyStatus()
  #names = new PromptNames()
  #cache: Cache | undefined
  #bundle: BundledPrompts | undefined

  constructor(options: ClientOptions = {}) {
    const { timeout, maxRetries, cache, bundle } = options
    const baseUrl = options.baseUrl ?? readVariable("PROMPT_RETRIEVAL_URL")
    this.#options = options
    this.#defaults = this.#toSettings({ timeout, maxRetries })
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
    list: (params, options) =>
      readList((query) => this.#read(promptsPath + query, isPageEnvelope, options), params),
    get: (prompt, options) => toCall(this.#readPrompt(prompt, "", isSingleEnvelope, options)),
    getResolved: (prompt, options) => toCall(this.#getResolved(prompt, options)),
    versions: {
      list: (prompt, params, options) =>
        readList((query) => this.#readPrompt(prompt, `/versions${query}`, isPageEnvelope, options), params),
      get: (prompt, version, options) =>
        toCall(
          this.#readPrompt(prompt, `/versions/${encodeURIComponent(version)}`, isSingleEnvelope, options)
        )
    }
  }

  /**
   * Returns a client with other options. An absent option does not change; an option that is `undefined` gets its
   * default.
   *
   * If the key and the service do not change, a 401, 403 or 429 to one client takes effect in both clients. If `fetch`
   * and `headers` do not change either, the clients also share the names that they have read. If `cache` does not
   * change either, they also share the cache.
   */
  withOptions(options: ClientOptions): PromptClient {
    const client = new PromptClient({ ...this.#options, ...options })
    if (client.#account !== this.#account) return client
    client.#transport.pause = this.#transport.pause
    client.#keyStatus = this.#keyStatus
    const isSame = (name: keyof ClientOptions) => client.#options[name] === this.#options[name]
    if (isSame("bundle")) client.#bundle = this.#bundle
    if (isSame("fetch") && isSame("headers")) {
      client.#names = this.#names
      if (isSame("cache")) client.#cache = this.#cache
    }
    return client
  }

  /**
   * Loads resolved prompts into the cache: the given prompts, or all prompts that match a filter. Waits whenever the
   * rate limit is exceeded: 1,000 prompts take about 10 minutes with the default limit of 100 per minute.
   *
   * Resolves to the number of loaded prompts and the failures, even in an outage. Rejects after a 401 or 403, if the
   * list cannot be read, and if the signal is aborted. Also rejects if the client has no cache (`TypeError`), or if the
   * cache is smaller than the selection (`RangeError`).
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
    // The prefetch as a whole has no time limit.
    return withLimits({ signal: options.signal }, async (signal) => {
      const list = (filter: PrefetchFilter) =>
        this.#listAll(filter, limits, (request) => respectRateLimit(signal, request))
      const ids = new Map<string, string | undefined>()
      const listed: Array<PromptSummary> = []
      if (Array.isArray(selection)) {
        for (const prompt of selection) ids.set(toName(prompt), await this.#findId(prompt))
      } else {
        const prompts = list(selection as PrefetchFilter)
        requireRoom((await prompts).meta.total)
        for await (const prompt of prompts) listed.push(prompt)
        for (const { id } of listed) ids.set(id, id)
      }
      requireRoom(ids.size)
      // The names of the selected prompts are read now, because the service may be down when the application needs
      // them.
      const isPartial = Array.isArray(selection) ? [...ids.values()].includes(undefined) : toQuery(selection)
      if (isPartial) await this.#names.read(list({}))
      else if (listed.length) await this.#names.read(listed)
      const load = async (name: string) =>
        this.#readPrompt(ids.get(name) ?? this.#names.requireId(name), "/resolved", isSingleEnvelope, limits)
      return loadAll([...ids.keys()], load, { concurrency, onProgress, signal })
    })
  }

  /** Lists all prompts that match a filter. Never returns a cached page. `run` runs the request for each page. */
  #listAll(
    filter: PrefetchFilter,
    limits: CallOptions,
    run = <A>(request: () => Promise<A>): Promise<A> => request()
  ): List<PromptSummary> {
    return readList((query) => run(() => this.#read(promptsPath + query, isPageEnvelope, limits, true)), {
      ...filter,
      per_page: 100
    })
  }

  /**
   * Reads a resolved prompt. Tries the cache or the service, then the bundle, then the fallback. In the mode
   * `bundle-first`, tries the bundle first.
   */
  async #getResolved<E>(prompt: string | PromptReference, options: ResolvedOptions = {}): Promise<E> {
    const name = toName(prompt)
    const isBundleFirst = this.#options.mode === "bundle-first" && !options.signal?.aborted
    if (isBundleFirst && !this.#keyStatus.isRejected) {
      const bundled = await this.#bundle?.find(prompt)
      if (bundled) return bundled as E
    }
    try {
      return await this.#readPrompt<E>(prompt, "/resolved", isSingleEnvelope, options)
    } catch (error) {
      // A key that the service has rejected must not get a bundled or fallback text, even if the service is now down.
      if (!isOutage(error) || this.#keyStatus.isRejected) throw error
      const bundled = await this.#bundle?.find(prompt)
      if (bundled) return bundled as E
      const { fallback } = options
      if (fallback === undefined) throw error
      return toFallbackResult(name, typeof fallback === "function" ? await fallback(error) : fallback) as E
    }
  }

  /** Returns the id of a prompt if no request is needed to find the id. */
  async #findId(prompt: string | PromptReference): Promise<string | undefined> {
    const name = toName(prompt)
    return isId(name) ? name : (this.#names.findId(name) ?? (await this.#bundle?.find(prompt))?.data.id)
  }

  /**
   * Reads a path below the path of a prompt. Looks up the name of the prompt if its id is not known, or if the prompt
   * with the known id no longer exists.
   */
  async #readPrompt<E>(
    prompt: string | PromptReference,
    path: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options: CallOptions = {}
  ): Promise<E> {
    const name = toName(prompt)
    const read = (id: string, options: CallOptions) =>
      this.#read<E>(`${promptsPath}/${encodeURIComponent(id)}${path}`, isEnvelope, options)
    if (isId(name)) return read(name, options)
    const { timeout, maxRetries } = this.#toSettings(options)
    return withLimits({ timeout, signal: options.signal }, async (signal) => {
      const limited = { ...options, signal }
      const knownId = await this.#findId(prompt)
      let notFound: unknown
      if (knownId) {
        try {
          return await read(knownId, limited)
        } catch (error) {
          if (!(error instanceof NotFoundError) || error.message === "Version not found") throw error
          notFound = error
        }
      }
      const id = await this.#names.lookUp(name, knownId, `${timeout} ${maxRetries}`, () =>
        this.#listAll({}, { timeout, maxRetries })
      )
      if (id === knownId) throw notFound
      return read(id, limited)
    })
  }

  #toSettings({
    timeout = this.#defaults.timeout,
    maxRetries = this.#defaults.maxRetries,
    headers,
    signal
  }: CallOptions) {
    return {
      timeout: requireInteger("timeout", timeout, 1),
      maxRetries: requireInteger("maxRetries", maxRetries, 0),
      headers,
      signal
    } satisfies CallSettings
  }

  /** Reads a target from the cache or the service. If `isConfirmed` is true, never returns a cached result. */
  async #read<E>(
    target: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options: CallOptions = {},
    isConfirmed = false
  ): Promise<E> {
    const settings = this.#toSettings(options)
    const send: Loader = (settings, etag) =>
      this.#keyStatus.observe(() => this.#transport.send(target, settings, isEnvelope, etag))
    if (this.#cache === undefined || !isCacheable(options.headers)) {
      const requestedAt = readClocks()
      const response = await send(settings)
      const source = response.info.isServedStale ? "stale" : "fresh"
      return toServiceResult({ ...toEntry(response, requestedAt), source }, response.envelope)
    }
    this.#cache.evictAfter(this.#keyStatus.rejections)
    const refreshSettings = isConfirmed ? undefined : this.#defaults
    return toServiceResult(await this.#cache.read(target, settings, refreshSettings, send))
  }
}
