import { makeFindBundled } from "./Bundle.ts"
import { Cache, isCacheable, type Loader } from "./Cache.ts"
import { NotFoundError } from "./Errors.ts"
import { type Live, type LiveOptions, LivePrompts } from "./Live.ts"
import {
  type CacheLimits,
  type CallOptions,
  type ClientOptions,
  type PrefetchOptions,
  type PrefetchResult,
  parseOptions,
  type ResolvedOptions,
  requireKnown,
  toSettings
} from "./Options.ts"
import { isOutage } from "./Outages.ts"
import { type PromptReference, toName } from "./PromptReference.ts"
import type { Prompts } from "./Prompts.ts"
import { readList, toCall, toServiceResult, toSubstitute } from "./Results.ts"
import { normalizeSelection, type PromptSelection } from "./Selection.ts"
import {
  isPageEnvelope,
  isResolvedEnvelope,
  isSingleEnvelope,
  type UnknownJson
} from "./transport/Envelopes.ts"
import { type CallSettings, withLimits } from "./transport/Limits.ts"
import { normalizeHeaders, Transport } from "./transport/Transport.ts"

const promptsPath = "/api/v1/prompts"

/**
 * A client of the prompt-retrieval API. Only the result of `live` needs to be closed. The constructor throws a
 * `TypeError` or `RangeError` that names the invalid or unknown option.
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
  readonly #defaults: CallSettings
  /** Identifies the service and the key. Clients share state only if their accounts are equal. */
  readonly #account: string
  readonly #cacheLimits: CacheLimits
  #cache: Cache | undefined
  #lives = new Set<LivePrompts>()
  #findBundled: ReturnType<typeof makeFindBundled> | undefined

  constructor(options: ClientOptions = {}) {
    const { call, limits, ...connection } = parseOptions(options)
    this.#options = options
    this.#defaults = call
    this.#cacheLimits = limits
    this.#account = `${connection.baseUrl} ${connection.apiKey}`
    this.#transport = new Transport({ ...connection, headers: normalizeHeaders(options.headers) })
    if (options.bundle) this.#findBundled = makeFindBundled(options.bundle)
    if (options.cache) this.#cache = new Cache(limits)
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
   * Returns a client with other options. An absent option keeps its value. An option that is `undefined` gets its
   * default.
   *
   * If the key and the service do not change, a 401, 403 or 429 that one client receives affects both clients. If
   * `fetch`, `headers` and `cache` do not change either, the clients also share the cache.
   */
  withOptions(options: ClientOptions): PromptClient {
    const client = new PromptClient({ ...this.#options, ...options })
    if (client.#account !== this.#account) return client
    client.#transport.key = this.#transport.key
    const isSame = (name: keyof ClientOptions) => client.#options[name] === this.#options[name]
    if (isSame("bundle")) client.#findBundled = this.#findBundled
    if ((["fetch", "headers", "cache"] as const).every(isSame)) {
      client.#cache = this.#cache
      client.#lives = this.#lives
    }
    return client
  }

  /**
   * Loads resolved prompts into the cache, with one request per 100 prompts. The results are stored under the given
   * names and ids or, with a filter, under the names of the prompts. Rejects if a request fails, if the client has no
   * cache (`TypeError`), or if the cache is smaller than the selection (`RangeError`).
   */
  async prefetch(selection: PromptSelection, options: PrefetchOptions = {}): Promise<PrefetchResult> {
    const { maxEntries } = this.#cacheLimits
    if (this.#cache === undefined) throw new TypeError("prefetch needs the option cache")
    const call = toSettings(options, this.#defaults)
    const normalized = normalizeSelection(selection)
    const live = new LivePrompts(normalized, { transport: this.#transport, limits: this.#cacheLimits, call })
    await withLimits({ signal: call.signal }, () => live.load()).finally(() => live.close())
    const { texts } = live
    if (texts.size > maxEntries)
      throw new RangeError(`cache.maxEntries is less than the ${texts.size} prompts selected`)
    for (const [name, entry] of texts) this.#cache.store(toPromptTarget(name, "/resolved"), entry)
    const missing = normalized.names?.filter((name) => !texts.has(name)) ?? []
    return { loaded: texts.size, missing }
  }

  /**
   * Loads resolved prompts into memory, and keeps them current until the result is closed. `getResolved` returns these
   * prompts without a request. For each 100 prompts, one request waits for changes. If the service is not available,
   * resolves without texts and continues to send requests. Rejects if a request fails for any other reason.
   */
  async live(selection: PromptSelection, options: LiveOptions = {}): Promise<Live> {
    requireKnown(options, { onChange: true })
    const live = new LivePrompts(normalizeSelection(selection), {
      ...options,
      transport: this.#transport,
      limits: this.#cacheLimits,
      call: this.#defaults,
      lives: this.#lives
    })
    await live.load().catch((error) => {
      live.close()
      throw error
    })
    return live
  }

  /**
   * Reads a resolved prompt. Tries the live prompts first, then the cache or the service, then the bundle, and then the
   * fallback. In the mode `bundle-first`, tries the bundle first.
   */
  async #getResolved<E>(prompt: string | PromptReference, options: ResolvedOptions = {}): Promise<E> {
    const { fallback, ...callOptions } = options
    const { signal, headers } = toSettings(callOptions, this.#defaults)
    const name = toName(prompt)
    const { key } = this.#transport
    const findBundled = async () => {
      const bundled = await this.#findBundled?.(name)
      return bundled && (toSubstitute("bundled", name, bundled) as E)
    }
    if (!signal?.aborted) {
      const bundled = this.#options.mode === "bundle-first" && !key.isRejected && (await findBundled())
      if (bundled) return bundled
      if (isCacheable(headers)) {
        for (const live of this.#lives) {
          const result = live.find(name)
          if (result) return toServiceResult(result, name)
        }
      }
    }
    try {
      return await this.#readPrompt<E>(name, "/resolved", isResolvedEnvelope, callOptions)
    } catch (error) {
      // A key that the service has rejected must not get a bundled or fallback text, even if the service is now down.
      if (!isOutage(error) || key.isRejected) throw error
      const bundled = await findBundled()
      if (bundled) return bundled
      if (fallback === undefined) throw error
      const content = typeof fallback === "function" ? await fallback(error) : fallback
      const { type, model } = prompt as Partial<PromptReference>
      return toSubstitute("fallback", name, { prompt_type: type, target_model: model, content }) as E
    }
  }

  /** Reads a path below the path of a prompt. */
  async #readPrompt<E>(
    prompt: string | PromptReference,
    path: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options?: CallOptions
  ): Promise<E> {
    const name = toName(prompt)
    return this.#read(toPromptTarget(name, path), isEnvelope, options, name)
  }

  /** Reads a target from the cache or the service. */
  async #read<E>(
    target: string,
    isEnvelope: (body: UnknownJson) => boolean,
    options?: CallOptions,
    name?: string
  ): Promise<E> {
    const settings = toSettings(options, this.#defaults)
    const load: Loader = (settings, previous) => this.#transport.send(target, settings, isEnvelope, previous)
    if (!this.#cache || !isCacheable(settings.headers)) return toServiceResult(await load(settings), name)
    // Outside Node, a refresh can keep the program running until its timeout. The service responds within 5 s.
    const timeout = Math.min(this.#defaults.timeout, 10_000)
    const refreshSettings = { ...this.#defaults, timeout, isBackground: true }
    const { rejections } = this.#transport.key
    return toServiceResult(await this.#cache.read(target, settings, refreshSettings, rejections, load), name)
  }
}

/**
 * Returns the target of a path below the path of a prompt. Throws a `NotFoundError` for a text that is neither a name
 * nor an id, such as a title or `..`. Such a text must not become part of a path.
 */
const toPromptTarget = (name: string, path: string): string => {
  if (/^[\w-]+$/.test(name)) return `${promptsPath}/${name}${path}`
  const message = "Prompt not found; names look like support-agent"
  throw new NotFoundError({ status: 404, code: "NOT_FOUND", message })
}
