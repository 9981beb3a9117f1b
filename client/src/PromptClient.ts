import { readClocks } from "./cache/Age.ts"
import { BundledPrompts } from "./BundledPrompts.ts"
import { Cache, type CacheEntry, isCacheable, type Loader, toEntry } from "./cache/Cache.ts"
import { isPageEnvelope, isResolvedPage, isSingleEnvelope, toServiceResult } from "./transport/Envelopes.ts"
import { readVariable } from "./Environment.ts"
import { isOutage, NotFoundError } from "./Errors.ts"
import { readList } from "./Lists.ts"
import { KeyStatus } from "./transport/KeyStatus.ts"
import type { CallSettings } from "./transport/Limits.ts"
import {
  type CallOptions,
  type ClientOptions,
  defaultOptions,
  normalizeBaseUrl,
  type PrefetchOptions,
  type PrefetchResult,
  requireApiKey,
  requireInteger,
  requireMode,
  type ResolvedOptions
} from "./Options.ts"
import { type PromptReference, toName } from "./PromptReference.ts"
import type { Prompts } from "./Prompts.ts"
import { toCall, toFallbackResult } from "./Results.ts"
import { type NormalSelection, normalizeSelection, type PromptSelection, readSelection } from "./Selection.ts"
import { normalizeHeaders, type SuccessResponse, Transport, type UnknownJson } from "./transport/Transport.ts"

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
   * If the key and the service do not change, a 401, 403 or 429 to one client takes effect in both clients. If `fetch`,
   * `headers` and `cache` do not change either, the clients also share the cache.
   */
  withOptions(options: ClientOptions): PromptClient {
    const client = new PromptClient({ ...this.#options, ...options })
    if (client.#account !== this.#account) return client
    client.#transport.pause = this.#transport.pause
    client.#keyStatus = this.#keyStatus
    const isSame = (name: keyof ClientOptions) => client.#options[name] === this.#options[name]
    if (isSame("bundle")) client.#bundle = this.#bundle
    if (isSame("fetch") && isSame("headers") && isSame("cache")) client.#cache = this.#cache
    return client
  }

  /**
   * Loads resolved prompts into the cache, with one request per 100 prompts: the prompts with the given names or ids, or
   * all prompts that match a filter. The results are stored under the given names and ids or, with a filter, under the
   * names of the prompts.
   *
   * Rejects if a request fails, if the client has no cache (`TypeError`), and if the cache is smaller than the selection
   * (`RangeError`).
   */
  async prefetch(selection: PromptSelection, options: PrefetchOptions = {}): Promise<PrefetchResult> {
    const { maxEntries = defaultOptions.cache.maxEntries } = this.#options.cache ?? {}
    if (this.#cache === undefined) throw new TypeError("prefetch needs the option cache")
    this.#cache.resume()
    this.#cache.evictAfter(this.#keyStatus.rejections)
    const store = this.#cache.startStoring()
    const normalized = normalizeSelection(selection)
    const entries = await this.readSelection(normalized, options)
    if (entries.size > maxEntries)
      throw new RangeError(`cache.maxEntries is less than the ${entries.size} prompts selected`)
    for (const [name, entry] of entries) store(toPromptTarget(name, "/resolved"), entry)
    const { names = [] } = normalized
    return { loaded: entries.size, missing: names.filter((name) => !entries.has(name)) }
  }

  /** @internal Reads the resolved prompts of a selection. */
  readSelection(selection: NormalSelection, options: PrefetchOptions): Promise<Map<string, CacheEntry>> {
    const settings = this.#toSettings(options)
    return readSelection(selection, async (target) => {
      const requestedAt = readClocks()
      return { response: await this.#send(target, settings, isResolvedPage), requestedAt }
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

  /** Reads a path below the path of a prompt. */
  async #readPrompt<E>(
    prompt: string | PromptReference,
    path: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options?: CallOptions
  ): Promise<E> {
    return this.#read(toPromptTarget(toName(prompt), path), isEnvelope, options)
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

  /** Reads a target from the cache or the service. */
  async #read<E>(
    target: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options: CallOptions = {}
  ): Promise<E> {
    const settings = this.#toSettings(options)
    const send: Loader = (settings, etag) => this.#send(target, settings, isEnvelope, etag)
    if (this.#cache === undefined || !isCacheable(options.headers)) {
      const requestedAt = readClocks()
      const response = await send(settings)
      const source = response.info.isServedStale ? "stale" : "fresh"
      return toServiceResult({ ...toEntry(response, requestedAt), source }, response.envelope)
    }
    this.#cache.evictAfter(this.#keyStatus.rejections)
    return toServiceResult(await this.#cache.read(target, settings, this.#defaults, send))
  }

  /** Sends a request, and records whether the service accepts the key. */
  #send(...request: Parameters<Transport["send"]>): Promise<SuccessResponse> {
    return this.#keyStatus.observe(() => this.#transport.send(...request))
  }
}

/**
 * Returns the target of a path below the path of a prompt. A text that is neither a name nor an id, such as a title or
 * `..`, must not become part of a path.
 */
const toPromptTarget = (name: string, path: string): string => {
  if (/^[\w-]+$/.test(name)) return `${promptsPath}/${name}${path}`
  const message = "Prompt not found; a name is a slug, such as support-agent"
  throw new NotFoundError({ status: 404, code: "NOT_FOUND", message })
}
