import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Bucket, RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { type RateWindow, toRateWindow } from "../../../domain/ApiKey.ts"

/**
 * Counts the requests of this process in clock minutes. `now` is in milliseconds since the epoch. The counter keeps the
 * counts of two minutes: the minute of the latest request, and the nearest other minute. A request in the previous
 * minute, for example after the clock was set back, therefore still finds the counts of that minute.
 */
export interface FixedWindowCounter {
  /** Returns the count of a bucket without changing anything. */
  readonly get: (bucket: Bucket, now: number) => RequestCount
  readonly isKnownExhausted: (bucket: Bucket, limit: number, now: number) => boolean
  /** Counts one request and returns true, or returns false if the count is at `limit`. */
  readonly take: (bucket: Bucket, limit: number, now: number) => boolean
  /** Refunds one request if any was counted. */
  readonly refund: (bucket: Bucket, now: number) => void
  /**
   * Records a request that a shared counter admitted, and returns true. `total` is the shared count. If this process
   * alone has already admitted `limit` requests, the shared counter must have lost its count. In this case, records
   * nothing and returns false.
   */
  readonly admit: (bucket: Bucket, limit: number, total: number, now: number) => boolean
  /** Raises the total to the count that a shared counter reports. A lower count changes nothing. */
  readonly raiseTo: (bucket: Bucket, total: number, now: number) => void
}

/** The count of one bucket in one minute. */
export interface RequestCount {
  /** The requests that this process admitted, minus its refunds. */
  readonly own: number
  /** The highest total that this process knows, including the requests of other processes; at least `own`. */
  readonly total: number
}

interface WindowCounts {
  readonly window: RateWindow
  readonly byBucket: Map<Bucket, RequestCount>
}

const zero: RequestCount = { own: 0, total: 0 }

const makeEmptyWindow = (window: RateWindow): WindowCounts => ({ window, byBucket: new Map() })

const distance = (a: WindowCounts, b: WindowCounts): number => Math.abs(a.window - b.window)

export const makeFixedWindowCounter = (): FixedWindowCounter => {
  let latest = makeEmptyWindow(Number.NEGATIVE_INFINITY)
  let previous = latest

  const findWindow = (now: number): WindowCounts | undefined => {
    const window = toRateWindow(now)
    return window === latest.window ? latest : window === previous.window ? previous : undefined
  }

  /**
   * Returns the counts of the minute of `now`, and makes this minute `latest`. If `latest` was another minute, `previous`
   * becomes the kept minute that is nearest to the new `latest`.
   */
  const windowFor = (now: number): WindowCounts["byBucket"] => {
    const next = findWindow(now) ?? makeEmptyWindow(toRateWindow(now))
    if (next !== latest) {
      if (next === previous || distance(latest, next) <= distance(previous, next)) previous = latest
      latest = next
    }
    return next.byBucket
  }

  const get = (bucket: Bucket, now: number): RequestCount => findWindow(now)?.byBucket.get(bucket) ?? zero

  return {
    get,
    isKnownExhausted: (bucket, limit, now) => get(bucket, now).total >= limit,
    take: (bucket, limit, now) => {
      const counts = windowFor(now)
      const { own, total } = counts.get(bucket) ?? zero
      if (total >= limit) return false
      counts.set(bucket, { own: own + 1, total: total + 1 })
      return true
    },
    refund: (bucket, now) => {
      const { own, total } = get(bucket, now)
      if (total > 0) findWindow(now)?.byBucket.set(bucket, { own: Math.max(own - 1, 0), total: total - 1 })
    },
    admit: (bucket, limit, reported, now) => {
      const counts = windowFor(now)
      const { own, total } = counts.get(bucket) ?? zero
      if (own >= limit) return false
      counts.set(bucket, { own: own + 1, total: Math.max(total, reported, own + 1) })
      return true
    },
    raiseTo: (bucket, reported, now) => {
      const counts = windowFor(now)
      const { own, total } = counts.get(bucket) ?? zero
      if (reported > total) counts.set(bucket, { own, total: reported })
    }
  }
}

/** Counts requests in the memory of this process, for a service without a shared counter. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
  const counter = makeFixedWindowCounter()
  return {
    isKnownExhausted: counter.isKnownExhausted,
    take: (bucket, limit, now) => Effect.sync(() => counter.take(bucket, limit, now)),
    refund: (bucket, now) => Effect.sync(() => counter.refund(bucket, now))
  }
})
