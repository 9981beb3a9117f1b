import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Bucket, RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { type RateWindow, toRateWindow } from "../../../domain/ApiKey.ts"

/** The count of one bucket in one minute. */
export interface RequestCount {
  /** The requests that this process admitted, minus its refunds. */
  readonly own: number
  /** The highest total that this process knows, including the requests of other processes; at least `own`. */
  readonly total: number
}

const zero: RequestCount = { own: 0, total: 0 }

/**
 * How many minutes keep their counts. A request in an earlier minute, for example after the clock was set back, still
 * finds the counts of that minute.
 */
const maxWindows = 3

/** Counts the requests of this process in clock minutes. `now` is in milliseconds since the epoch. */
export class FixedWindowCounter {
  readonly #windows = new Map<RateWindow, Map<Bucket, RequestCount>>()

  /** Returns the count of a bucket without changing anything. */
  get(bucket: Bucket, now: number): RequestCount {
    return this.#windows.get(toRateWindow(now))?.get(bucket) ?? zero
  }

  #set(bucket: Bucket, now: number, count: RequestCount): void {
    const window = toRateWindow(now)
    const counts = this.#windows.get(window)
    if (counts !== undefined) {
      counts.set(bucket, count)
      return
    }
    this.#windows.set(window, new Map([[bucket, count]]))
    // A map returns its keys in the order of insertion.
    const [oldest = window] = this.#windows.keys()
    if (this.#windows.size > maxWindows) this.#windows.delete(oldest)
  }

  isKnownExhausted(bucket: Bucket, limit: number, now: number): boolean {
    return this.get(bucket, now).total >= limit
  }

  /** Counts one request and returns true, or returns false if the count is at `limit`. */
  take(bucket: Bucket, limit: number, now: number): boolean {
    const { own, total } = this.get(bucket, now)
    if (total >= limit) return false
    this.#set(bucket, now, { own: own + 1, total: total + 1 })
    return true
  }

  /** Refunds one request if any was counted. */
  refund(bucket: Bucket, now: number): void {
    const { own, total } = this.get(bucket, now)
    if (total > 0) this.#set(bucket, now, { own: Math.max(own - 1, 0), total: total - 1 })
  }

  /**
   * Records a request that a shared counter admitted, and returns true. `reported` is the shared count. If this process
   * alone has already admitted `limit` requests, the shared counter must have lost its count. In this case, records
   * nothing and returns false.
   */
  admit(bucket: Bucket, limit: number, reported: number, now: number): boolean {
    const { own, total } = this.get(bucket, now)
    if (own >= limit) return false
    this.#set(bucket, now, { own: own + 1, total: Math.max(total, reported, own + 1) })
    return true
  }

  /** Raises the total to the count that a shared counter reports. A lower count changes nothing. */
  raiseTo(bucket: Bucket, reported: number, now: number): void {
    const { own, total } = this.get(bucket, now)
    if (reported > total) this.#set(bucket, now, { own, total: reported })
  }
}

/** Counts requests in the memory of this process, for a service without a shared counter. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
  const counter = new FixedWindowCounter()
  return {
    isKnownExhausted: (bucket, limit, now) => counter.isKnownExhausted(bucket, limit, now),
    take: (bucket, limit, now) => Effect.sync(() => counter.take(bucket, limit, now)),
    refund: (bucket, now) => Effect.sync(() => counter.refund(bucket, now))
  }
})
