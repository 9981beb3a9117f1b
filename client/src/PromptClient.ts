import { Cache, type CacheOptions } from "./Cache.ts"
import type { Call, Signal } from "./Limits.ts"
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

/** What may be told for a client and for one call alike. */
interface Settings {
  /** The most that a whole call may take, its retries and waits included, in milliseconds; 30,000 unless told. */
  readonly timeout?: number | undefined
  /** How often a request is sent again after a connection error, 408, 429 or 5xx; 2 unless told. */
  readonly maxRetries?: number | undefined
  /** Sent along; those of a call over those of the client. `accept` and `authorization` are always the client's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export interface ClientOptions extends Settings {
  /** An API key of the account settings; it is in no log line and in no error. */
  readonly apiKey: string
  /** Where the service is, `/api/v1` left out; `http://127.0.0.1:3000` unless told. A path is a prefix. */
  readonly baseUrl?: string | undefined
  /** In place of the platform's `fetch`. */
  readonly fetch?: Fetch | undefined
  readonly logger?: Logger | undefined
  /** Keeps results; without it each call is a request. */
  readonly cache?: CacheOptions | undefined
}

export interface CallOptions extends Settings {
  /** Ends the call with an `AbortError`, also while it waits. */
  readonly signal?: Signal | undefined
}

/**
 * A list: awaited it is one page, iterated it is every item from that page on, page after page, each page a call of its
 * own. An item that moves to a later page meanwhile comes once; one that moves to an earlier page may be missed.
 */
export interface List<A> extends Promise<Page<A>>, AsyncIterable<A> {}

/** Reads the versions of a prompt. */
export interface Versions {
  /**
   * Lists a prompt's versions, the newest first, without their content.
   *
   * @example
   * ```ts
   * import { PromptClient } from "prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…" })
   * for await (const version of client.prompts.versions.list("cef02dd3-514f-5723-8852-d3305a2e66a8")) {
   *   const line: string = `${version.version_number}: ${version.change_summary}`
   * }
   * ```
   */
  list(promptId: string, params?: PageParams, options?: CallOptions): List<VersionSummary>
  /**
   * Reads one version of a prompt; a `NotFoundError` where there is none of that number.
   *
   * @example
   * ```ts
   * import { PromptClient } from "prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…" })
   * const { data } = await client.prompts.versions.get("cef02dd3-514f-5723-8852-d3305a2e66a8", 3)
   * const content: string = data.content
   * ```
   */
  get(promptId: string, version: number, options?: CallOptions): Promise<Single<Version>>
}

/** Reads the prompts of the key's workspace. Every failure is a `PromptClientError`; a misuse is a `TypeError`. */
export interface Prompts {
  /**
   * Lists prompts, the last updated first, archived ones left out.
   *
   * @example
   * ```ts
   * import { PromptClient } from "prompt-retrieval/client"
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
   * Reads one prompt; a `NotFoundError` where the workspace has none of that id.
   *
   * @example
   * ```ts
   * import { NotFoundError, PromptClient } from "prompt-retrieval/client"
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
   * Reads one prompt with its fragments inlined, ready to send to a model; as `get` otherwise.
   *
   * @example
   * ```ts
   * import { fillSlots, PromptClient } from "prompt-retrieval/client"
   *
   * const client = new PromptClient({ apiKey: "key_live_…", cache: {} })
   * const { data } = await client.prompts.getResolved("cef02dd3-514f-5723-8852-d3305a2e66a8", { timeout: 2_000 })
   * const text: string = fillSlots(data.resolved_content, { shop: "Acme" })
   * ```
   */
  getResolved(id: string, options?: CallOptions): Promise<Single<ResolvedPrompt>>
  readonly versions: Versions
}

/** A limit as it was given: an integer from `least` to the longest that a timer can be set to. */
const limit = (name: string, value: number, least: number): number => {
  if (Number.isInteger(value) && value >= least && value < 2 ** 31) return value
  throw new RangeError(`${name} must be an integer from ${least} to ${2 ** 31 - 1}`)
}

const baseOf = (baseUrl: string): string => {
  const { protocol, host, pathname, username, password, search, hash } = new URL(baseUrl)
  if (!/^https?:$/.test(protocol) || username || password || search || hash) {
    throw new TypeError("baseUrl must be an http or https URL without credentials, query or fragment")
  }
  return `${protocol}//${host}${pathname.replace(/\/+$/, "")}`
}

/** Anything else could not be sent in a header; a refusal must not repeat it. */
const keyOf = (apiKey: string): string => {
  if (typeof apiKey === "string" && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey
  throw new TypeError("apiKey must be printable ASCII without spaces")
}

const promptPath = (id: string): string => {
  // A URL can't hold these as a part of its path: it would be another path.
  if (typeof id !== "string" || /^\.{0,2}$/.test(id)) throw new TypeError("id must be a prompt's id")
  return `/api/v1/prompts/${encodeURIComponent(id.toWellFormed())}`
}

/** In one order, so that the same question is the same target. */
const queryOf = (params: object): string => {
  const given = Object.entries(params).filter(([, value]) => value !== undefined)
  return given.length > 0 ? `?${new URLSearchParams(given.sort())}` : ""
}

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isSingle = (body: UnknownJson): boolean => isObject(body?.data)

const isPage = (body: UnknownJson): boolean =>
  Array.isArray(body?.data) &&
  body.data.every(isObject) &&
  [body.meta?.page, body.meta?.per_page, body.meta?.total].every(Number.isInteger) &&
  body.meta.per_page > 0

/** Headers that only tell who asks: whatever they say, the answer is the same. */
const tellsOnly = /^(x-request-id|traceparent|tracestate|baggage|user-agent)$/i

/**
 * A client of the prompt retrieval API. It has no dependency, holds no connection of its own and needs no closing.
 *
 * Throws a `TypeError` or `RangeError` that names the option where one is unusable.
 *
 * @example
 * ```ts
 * import { PromptClient } from "prompt-retrieval/client"
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
  readonly #defaults: Call

  constructor(options: ClientOptions) {
    const { timeout = 30_000, maxRetries = 2, cache } = options
    this.#defaults = {
      timeout: limit("timeout", timeout, 1),
      maxRetries: limit("maxRetries", maxRetries, 0)
    }
    this.#transport = new Transport({
      apiKey: keyOf(options.apiKey),
      baseUrl: baseOf(options.baseUrl ?? "http://127.0.0.1:3000"),
      headers: Object.fromEntries(new Headers(options.headers)),
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
      logger: options.logger ?? {}
    })
    if (cache === undefined) return
    const { ttl = 30_000, maxStale = 300_000, maxEntries = 1_000 } = cache
    this.#cache = new Cache(
      {
        ttl: limit("cache.ttl", ttl, 0),
        maxStale: limit("cache.maxStale", maxStale, 0),
        maxEntries: limit("cache.maxEntries", maxEntries, 1)
      },
      this.#defaults
    )
  }

  readonly prompts: Prompts = {
    list: (params, options) => this.#list(() => "/api/v1/prompts", params, options),
    get: async (id, options) => this.#read(promptPath(id), isSingle, options),
    getResolved: async (id, options) => this.#read(`${promptPath(id)}/resolved`, isSingle, options),
    versions: {
      list: (id, params, options) => this.#list(() => `${promptPath(id)}/versions`, params, options),
      get: async (id, version, options) =>
        this.#read(`${promptPath(id)}/versions/${encodeURIComponent(version)}`, isSingle, options)
    }
  }

  #list<A>(path: () => string, params: PageParams = {}, options?: CallOptions): List<A> {
    const read = async (page: number | undefined) =>
      this.#read<Page<A>>(path() + queryOf({ ...params, page }), isPage, options)
    const first = read(params.page)
    return Object.assign(first, {
      async *[Symbol.asyncIterator]() {
        const seen = new Set<unknown>()
        for (let page = await first, number = params.page ?? 1; ; page = await read(++number)) {
          for (const item of page.data) {
            const { id, version_number } = item as { id?: string; version_number?: number }
            const name = id ?? version_number
            if (!seen.has(name)) yield item
            seen.add(name)
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
    const call: Call = {
      timeout: limit("timeout", timeout, 1),
      maxRetries: limit("maxRetries", maxRetries, 0),
      headers,
      signal: options.signal
    }
    const send = (call: Call, etag?: string | null) => this.#transport.send(target, call, isEnvelope, etag)
    if (this.#cache === undefined || !Object.keys(headers).every((name) => tellsOnly.test(name))) {
      return from((await send(call))!.envelope, "fresh") as E
    }
    const { text, source } = await this.#cache.read(target, call, send)
    return from(JSON.parse(text), source) as E
  }
}

/** An envelope that tells where it came from to whoever asks, and is as the service sent it to everyone else. */
const from = (envelope: unknown, source: Source): unknown =>
  Object.defineProperty(envelope as object, "source", { value: source })
