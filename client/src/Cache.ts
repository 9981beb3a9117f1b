import { InvalidResponseError, PromptApiError, TimeoutError } from "./Errors.ts"
import { type CallSettings, now, rejectOnAbort, withLimits } from "./Limits.ts"
import type { Source } from "./Resources.ts"

/** Options of the cache. The default times are those that the service allows shared caches. */
export interface CacheOptions {
  /** How long a cached result is returned without a request, in milliseconds. Default: 30,000. */
  readonly ttl?: number | undefined
  /**
   * How long after `ttl` a cached result may still be returned, in milliseconds. Default: 300,000. Such a result is
   * returned immediately and refreshed in the background, so reads survive an outage of this length.
   */
  readonly maxStale?: number | undefined
  /** Maximum number of cached results; the least recently used is evicted first. Default: 1,000. */
  readonly maxEntries?: number | undefined
}

/** Requests a target from the service. Resolves to `undefined` if the representation named by `etag` is current. */
export type Loader = (settings: CallSettings, etag?: string | null) => Promise<ResponseBody | undefined>

/** The body of a successful response. */
export interface ResponseBody {
  readonly text: string
  readonly etag: string | null
}

interface CacheEntry extends ResponseBody {
  /** Start time of the request that returned or revalidated the entry. */
  readonly confirmedAt: number
}

/** A request that all waiting callers share. */
interface InFlightRead {
  readonly body: Promise<ResponseBody>
  readonly controller: AbortController
  waiters: number
}

const getStatus = (error: unknown): number | undefined =>
  error instanceof PromptApiError || error instanceof InvalidResponseError ? error.status : undefined

/**
 * Caches the bodies of successful responses by target (path and query). Entries are text, so that callers never share
 * an object. A 404 evicts its entry; a 401 or 403 clears the cache, because it concerns the key; any other failure
 * leaves the entries unchanged.
 */
export class Cache {
  readonly #options: Readonly<Record<keyof CacheOptions, number>>
  readonly #refreshSettings: CallSettings
  #entries = new Map<string, CacheEntry>()
  readonly #inFlight = new Map<string, InFlightRead>()

  /** Background refreshes use `refreshSettings`, because no caller waits for them. */
  constructor(options: Readonly<Record<keyof CacheOptions, number>>, refreshSettings: CallSettings) {
    this.#options = options
    this.#refreshSettings = refreshSettings
  }

  /**
   * Returns a target's body: from the cache within `ttl`, from the cache with a background refresh within `maxStale`,
   * otherwise from the service.
   */
  async read(
    target: string,
    settings: CallSettings,
    load: Loader
  ): Promise<{ readonly text: string; readonly source: Source }> {
    const { ttl, maxStale } = this.#options
    const entry = this.#entries.get(target)
    if (entry === undefined || settings.signal?.aborted) return this.#awaitShared(target, settings, load)
    this.#store(this.#entries, target, entry)
    const age = now() - entry.confirmedAt
    if (age < ttl) return { text: entry.text, source: "cached" }
    if (age >= ttl + maxStale) return this.#awaitShared(target, settings, load)
    // Background refresh: no caller can abort it.
    this.#startOrJoin(target, this.#refreshSettings, load).waiters = Number.POSITIVE_INFINITY
    return { text: entry.text, source: "stale" }
  }

  /** Waits for a shared read. A caller's abort ends only its own wait; the last waiter's abort ends the read. */
  #awaitShared(target: string, settings: CallSettings, load: Loader) {
    return withLimits(settings, async (signal) => {
      for (;;) {
        const read = this.#startOrJoin(target, settings, load)
        read.waiters++
        try {
          const { text } = await Promise.race([read.body, rejectOnAbort(signal)])
          return { text, source: "fresh" as const }
        } catch (error) {
          // If the joined read timed out before this call does, start another read.
          if (signal.aborted || !(error instanceof TimeoutError)) throw error
        } finally {
          if (--read.waiters === 0) read.controller.abort()
        }
      }
    })
  }

  /** Returns the in-flight read of a target or starts one. Calls with different limits do not share a read. */
  #startOrJoin(target: string, settings: CallSettings, load: Loader): InFlightRead {
    const key = `${target} ${settings.timeout} ${settings.maxRetries}`
    const running = this.#inFlight.get(key)
    if (running !== undefined) return running
    const controller = new AbortController()
    const read = {
      body: this.#load(target, { ...settings, signal: controller.signal }, load),
      controller,
      waiters: 0
    }
    const remove = () => {
      if (this.#inFlight.get(key) === read) this.#inFlight.delete(key)
    }
    this.#inFlight.set(key, read)
    controller.signal.addEventListener("abort", remove)
    read.body.then(remove, remove)
    return read
  }

  async #load(target: string, settings: CallSettings, load: Loader): Promise<ResponseBody> {
    // If the cache is cleared meanwhile, the result is stored in the discarded map.
    const entries = this.#entries
    const previous = entries.get(target)
    const confirmedAt = now()
    try {
      const { text, etag } = (await load(settings, previous?.etag)) ?? previous!
      const isNewest = (entries.get(target)?.confirmedAt ?? confirmedAt) <= confirmedAt
      if (isNewest) this.#store(entries, target, { text, etag, confirmedAt })
      return { text, etag }
    } catch (error) {
      const status = getStatus(error)
      if (status === 404) entries.delete(target)
      if (status === 401 || status === 403) this.#entries = new Map()
      throw error
    }
  }

  /** Stores an entry as the most recently used one and evicts the least recently used one if the map is full. */
  #store(entries: Map<string, CacheEntry>, target: string, entry: CacheEntry): void {
    entries.delete(target)
    entries.set(target, entry)
    if (entries.size > this.#options.maxEntries) entries.delete(entries.keys().next().value!)
  }
}
