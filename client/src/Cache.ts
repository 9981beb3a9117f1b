import { getElapsed, type Instant, readClocks, subtract } from "./Age.ts"
import { getStatus, isOutage, ServiceUnavailableError, TimeoutError } from "./Errors.ts"
import { type CallSettings, now, rejectOnAbort, withLimits } from "./Limits.ts"
import type { ServiceSource } from "./Resources.ts"
import type { ResponseInfo, SuccessResponse } from "./Transport.ts"

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

/** Requests a target from the service. The response is a 304 if the representation named by `etag` is current. */
export type Loader = (settings: CallSettings, etag?: string) => Promise<SuccessResponse>

/** The body of a response, and when the service confirmed it. */
export interface CacheEntry {
  readonly text: string
  /** The response that last confirmed the text. */
  readonly info: ResponseInfo
  /** Start of the request that returned or revalidated the entry, minus the age of its response. */
  readonly confirmedAt: Instant
}

/** An entry as a call gets it. */
export interface CacheResult extends CacheEntry {
  readonly source: ServiceSource
}

/** A request that all waiting callers share. */
interface InFlightRead {
  readonly entry: Promise<CacheEntry>
  readonly controller: AbortController
  waiters: number
}

/** Returns the entry that a response makes of the previous one. A 304 confirms the text of the previous entry. */
export const toEntry = (
  { text, info }: SuccessResponse,
  requestedAt: Instant,
  previous?: CacheEntry
): CacheEntry => ({
  text: text ?? previous!.text,
  info:
    text === undefined
      ? {
          ...info,
          etag: info.etag ?? previous?.info.etag,
          version: info.version ?? previous?.info.version
        }
      : info,
  confirmedAt: subtract(requestedAt, info.age)
})

/**
 * Caches the bodies of successful responses by target (path and query). Entries are text, so that callers never share
 * an object. A 404 evicts its entry; a 401 or 403 to any client of the key evicts all entries (`evictAfter`), because
 * it concerns the key; any other failure leaves the entries unchanged.
 *
 * No call returns text that the service last confirmed more than `ttl + maxStale` before the call. docs/client.md has
 * the states, events and invariants.
 */
export class Cache {
  readonly #options: Readonly<Record<keyof CacheOptions, number>>
  #entries = new Map<string, CacheEntry>()
  #inFlight = new Map<string, InFlightRead>()
  #rejections = 0
  /** After a failed refresh, the moment at which the next one may start; otherwise 0. */
  #refreshAt = 0

  constructor(options: Readonly<Record<keyof CacheOptions, number>>) {
    this.#options = options
  }

  /**
   * Evicts all entries if the service has rejected the key since the last call; `rejections` is their number. The
   * results of requests in flight are not stored, and further calls do not wait for them.
   */
  evictAfter(rejections: number): void {
    if (rejections === this.#rejections) return
    this.#rejections = rejections
    this.#entries = new Map()
    this.#inFlight = new Map()
  }

  /**
   * Returns a target's body: from the cache within `ttl`, from the cache with a background refresh within `maxStale`,
   * otherwise from the service. Background refreshes use `refreshSettings`, because no caller waits for them.
   */
  async read(
    target: string,
    settings: CallSettings,
    refreshSettings: CallSettings,
    load: Loader
  ): Promise<CacheResult> {
    const { ttl } = this.#options
    const entry = this.#entries.get(target)
    if (entry === undefined || settings.signal?.aborted) return this.#awaitShared(target, settings, load)
    this.#store(this.#entries, target, entry)
    const age = getElapsed(entry.confirmedAt)
    if (age < ttl) return { ...entry, source: "cached" }
    if (age >= this.#maxAge) return this.#awaitShared(target, settings, load)
    this.#refresh(target, refreshSettings, load)
    return { ...entry, source: "stale" }
  }

  /**
   * Starts a background refresh, which no caller can abort. While the service is not available, a refresh is one request,
   * and the next one starts after 60 to 90 % of `ttl`, at most 27 s: after an outage, many clients spread their requests.
   */
  #refresh(target: string, settings: CallSettings, load: Loader): void {
    if (now() < this.#refreshAt) return
    const maxRetries = this.#refreshAt ? 0 : settings.maxRetries
    const read = this.#startOrJoin(target, { ...settings, maxRetries }, load)
    read.waiters = Number.POSITIVE_INFINITY
    read.entry.catch((error) => {
      if (!isOutage(error)) return
      this.#refreshAt = now() + Math.min(this.#options.ttl, 30_000) * (0.6 + 0.3 * Math.random())
    })
  }

  get #maxAge(): number {
    return this.#options.ttl + this.#options.maxStale
  }

  /** Waits for a shared read. A caller's abort ends only its own wait; the last waiter's abort ends the read. */
  #awaitShared(target: string, settings: CallSettings, load: Loader): Promise<CacheResult> {
    const calledAt = readClocks()
    return withLimits(settings, async (signal) => {
      for (;;) {
        const isJoined = this.#inFlight.has(toReadKey(target, settings))
        const read = this.#startOrJoin(target, settings, load)
        read.waiters++
        try {
          const entry = await Promise.race([read.entry, rejectOnAbort(signal)])
          const age = getElapsed(entry.confirmedAt, calledAt)
          if (age <= this.#maxAge) return { ...entry, source: entry.info.isServedStale ? "stale" : "fresh" }
          // Another request may return a younger text than one that started before this call.
          if (!isJoined) throw toTooOldError(entry.info)
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
    const key = toReadKey(target, settings)
    const running = this.#inFlight.get(key)
    if (running !== undefined) return running
    const controller = new AbortController()
    const read = {
      entry: this.#load(target, { ...settings, signal: controller.signal }, load),
      controller,
      waiters: 0
    }
    const remove = () => {
      if (this.#inFlight.get(key) === read) this.#inFlight.delete(key)
    }
    this.#inFlight.set(key, read)
    controller.signal.addEventListener("abort", remove)
    read.entry.then(remove, remove)
    return read
  }

  async #load(target: string, settings: CallSettings, load: Loader): Promise<CacheEntry> {
    // If all entries are evicted meanwhile, the result is stored in the discarded map.
    const entries = this.#entries
    const previous = entries.get(target)
    const requestedAt = readClocks()
    try {
      const entry = toEntry(await load(settings, previous?.info.etag), requestedAt, previous)
      // A machine that was suspended meanwhile delivers a response that is older than its timers show.
      if (getElapsed(requestedAt) > Math.max(this.#maxAge, settings.timeout)) {
        throw new TimeoutError(`No result within ${settings.timeout} ms`)
      }
      this.#refreshAt = 0
      const stored = entries.get(target)
      const isNewest = stored === undefined || getElapsed(stored.confirmedAt, entry.confirmedAt) >= 0
      if (isNewest) this.#store(entries, target, entry)
      return entry
    } catch (error) {
      if (getStatus(error) === 404) entries.delete(target)
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

const toReadKey = (target: string, { timeout, maxRetries }: CallSettings): string =>
  `${target} ${timeout} ${maxRetries}`

/** The service or a cache in front of it returned a text that is older than the client may return. */
const toTooOldError = ({ age, requestId }: ResponseInfo): ServiceUnavailableError =>
  new ServiceUnavailableError({
    status: 503,
    code: "SERVICE_UNAVAILABLE",
    message: `The response is ${age / 1000} s old, which is more than ttl + maxStale`,
    requestId,
    retryAfter: undefined
  })
