import { ServiceUnavailableError, TimeoutError } from "./Errors.ts"
import type { CacheLimits } from "./Options.ts"
import { getStatus, isOutage } from "./Outages.ts"
import type { Source } from "./Resources.ts"
import {
  type CallSettings,
  getElapsed,
  now,
  readClocks,
  toTimeoutError,
  withLimits
} from "./transport/Limits.ts"
import type { ConfirmedText } from "./transport/Transport.ts"

/** Requests a target from the service. */
export type Loader = (settings: CallSettings, previous?: ConfirmedText) => Promise<ConfirmedText>

export interface CacheResult extends ConfirmedText {
  /** The source of the result. Default: the source of the response. */
  readonly source?: Source
}

/** The latest of a target's requests that failed because the service was not available. */
interface Failure {
  /** The number of consecutive failures before this failure. */
  readonly count: number
  readonly error: unknown
  /** The end of the pause after this failure. */
  readonly retryAt: number
}

/** A request that all waiting callers share. */
interface InFlightRead {
  readonly entry: Promise<ConfirmedText>
  readonly controller: AbortController
  waiters: number
}

/** Returns true if the headers of a call only identify the request or the caller. Such a call can use the cache. */
export const isCacheable = (headers: CallSettings["headers"] = {}): boolean =>
  Object.keys(headers).every((name) =>
    /^(x-request-id|traceparent|tracestate|baggage|user-agent)$/i.test(name)
  )

/**
 * Caches the bodies of successful responses by target (path and query). Entries are text, so that callers never share
 * an object. docs/client.md has the states, events and invariants.
 */
export class Cache {
  readonly #options: CacheLimits
  readonly #maxAge: number
  readonly #entries = new Map<string, ConfirmedText>()
  readonly #inFlight = new Map<string, InFlightRead>()
  readonly #failures = new Map<string, Failure>()

  constructor(options: CacheLimits) {
    this.#options = options
    this.#maxAge = options.ttl + options.maxStale
  }

  /**
   * Returns a target's body. If the cached body is younger than `ttl` + `maxStale`, returns the cached body. Otherwise,
   * requests the body from the service. After `ttl`, a call also refreshes the cached body in the background, with
   * `refreshSettings`. `rejections` is the number of rejections of the key so far.
   */
  async read(
    target: string,
    settings: CallSettings,
    refreshSettings: CallSettings,
    rejections: number,
    load: Loader
  ): Promise<CacheResult> {
    const entry = this.#entries.get(target)
    const isAllowed = entry?.info.rejections === rejections
    if (!isAllowed) this.#entries.delete(target)
    if (!settings.signal?.aborted) {
      const failure = this.#failures.get(target)
      const isPaused = failure && now() < failure.retryAt
      if (isAllowed) {
        this.#store(this.#entries, target, entry)
        const age = getElapsed(entry.info.confirmedAt)
        if (age < this.#options.ttl) return { ...entry, source: "cached" }
        if (age < this.#maxAge) {
          if (!isPaused) {
            const refresh = this.#startOrJoin(target, refreshSettings, rejections, load)
            // The refresh has a waiter that never leaves, so that no caller can abort the refresh.
            refresh.waiters++
            refresh.entry.catch(() => {})
          }
          return { ...entry, source: "stale" }
        }
      }
      // After the first failure, a caller without a cached text sends a second request immediately, because the outage
      // can be short. After further failures, the caller gets the last error until the pause ends.
      if (isPaused && failure.count) throw failure.error
    }
    return this.#awaitShared(target, settings, rejections, load)
  }

  /** Stores a text that the service has confirmed, unless a younger text is stored. Ends all pauses. */
  store(target: string, entry: ConfirmedText): void {
    this.#failures.clear()
    const stored = this.#entries.get(target)
    const isOutdated = stored && getElapsed(stored.info.confirmedAt, entry.info.confirmedAt) < 0
    if (!isOutdated) this.#store(this.#entries, target, entry)
  }

  /**
   * Waits for a shared read. An abort ends only the wait of the aborting caller. If no waiter is left, the read ends.
   */
  #awaitShared(
    target: string,
    settings: CallSettings,
    rejections: number,
    load: Loader
  ): Promise<ConfirmedText> {
    const calledAt = readClocks()
    return withLimits(settings, async (signal) => {
      for (;;) {
        const read = this.#startOrJoin(target, settings, rejections, load)
        const isJoined = read.waiters++ > 0
        try {
          const entry = await withLimits({ signal }, () => read.entry)
          const age = getElapsed(entry.info.confirmedAt, calledAt)
          if (age <= this.#maxAge) return entry
          // A joined request started before this call, so a new request can return a younger text.
          if (!isJoined)
            throw new ServiceUnavailableError({
              status: 503,
              code: "SERVICE_UNAVAILABLE",
              message: `The response is ${entry.info.age / 1000} s old, more than ttl + maxStale`,
              requestId: entry.info.requestId
            })
        } catch (error) {
          // If only the shared read timed out and this call has time left, another read starts.
          if (signal.aborted || !(error instanceof TimeoutError)) throw error
        } finally {
          if (--read.waiters === 0) read.controller.abort()
        }
      }
    })
  }

  /** Joins or starts a read. Calls share a read only if their limits and their numbers of rejections are equal. */
  #startOrJoin(target: string, settings: CallSettings, rejections: number, load: Loader): InFlightRead {
    const key = [target, settings.timeout, settings.maxRetries, rejections].join(" ")
    const running = this.#inFlight.get(key)
    if (running) return running
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

  /**
   * Requests a target and stores the response. A failure starts a pause, and disables the retries of the target's next
   * request. The first pauses are random, so that the requests of many clients are spread evenly.
   */
  async #load(target: string, settings: CallSettings, load: Loader): Promise<ConfirmedText> {
    const previous = this.#entries.get(target)
    const requestedAt = readClocks()
    const maxPause = Math.min(this.#options.ttl, 30_000) * 0.9
    const last = this.#failures.get(target)
    // A failure whose pause ended more than `2 * maxPause` ago does not prove that the service is still unavailable.
    const isRepeated = last && now() < last.retryAt + 2 * maxPause
    const maxRetries = isRepeated ? 0 : settings.maxRetries
    const entry = await load({ ...settings, maxRetries }, previous).catch((error) => {
      if (getStatus(error) === 404) this.#entries.delete(target)
      // After a 429, the transport pauses all requests of the key, so the cache starts no pause.
      if (isOutage(error) && getStatus(error) !== 429) {
        const count = isRepeated ? last.count + 1 : 0
        const pause = count > (previous ? 0 : 1) ? maxPause : maxPause * Math.random()
        this.#store(this.#failures, target, { count, error, retryAt: now() + pause })
      }
      throw error
    })
    // Timers stop while the machine is suspended, so the response can be older than the timeout.
    if (getElapsed(requestedAt) > Math.max(this.#maxAge, settings.timeout)) {
      throw toTimeoutError(settings.timeout)
    }
    this.store(target, entry)
    return entry
  }

  /** Stores a value as the most recently used, and evicts the least recently used value if the map is full. */
  #store<A>(entries: Map<string, A>, key: string, value: A): void {
    entries.delete(key)
    entries.set(key, value)
    if (entries.size > this.#options.maxEntries) entries.delete(entries.keys().next().value!)
  }
}
