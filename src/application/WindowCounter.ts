import { type RateWindow, windowOf } from "../domain/RateWindow.ts"
import type { Bucket } from "./RateLimiter.ts"

/**
 * Counts in this process, by clock minute; `now` is in milliseconds since the epoch. It holds the minute that was
 * counted in last and the nearest one before or after it, and forgets every other: a clock that steps back over a
 * minute's edge, or a count that comes late, finds that minute's counts as they were.
 */
export interface WindowCounter {
  /** The counts of a bucket; reading them changes nothing. */
  readonly get: (bucket: Bucket, now: number) => Count
  /** Whether the bucket has reached `limit`. */
  readonly isFull: (bucket: Bucket, limit: number, now: number) => boolean
  /** Counts one and gives true, or gives false and counts nothing at `limit`. */
  readonly take: (bucket: Bucket, limit: number, now: number) => boolean
  /** Takes one back, down to none. */
  readonly refund: (bucket: Bucket, now: number) => void
  /**
   * Counts a request that a shared counter admitted as number `total`. Returns false, and counts nothing, when this
   * process alone has admitted `limit` requests: the shared counter must have lost its count.
   */
  readonly admit: (bucket: Bucket, limit: number, total: number, now: number) => boolean
  /** Raises the total to the count that a shared counter reports. */
  readonly raise: (bucket: Bucket, total: number, now: number) => void
}

/** The count of one bucket in one minute. */
export interface Count {
  /** The requests that this process admitted, minus its refunds. */
  readonly own: number
  /** The highest total that this process knows of, including the requests of other processes; at least `own`. */
  readonly total: number
}

interface Counts {
  readonly window: RateWindow
  readonly byBucket: Map<Bucket, Count>
}

const none: Count = { own: 0, total: 0 }

const countsOf = (window: RateWindow): Counts => ({ window, byBucket: new Map() })

const distance = (a: Counts, b: Counts): number => Math.abs(a.window - b.window)

export const makeWindowCounter = (): WindowCounter => {
  let current = countsOf(Number.NEGATIVE_INFINITY)
  let other = current

  const find = (now: number): Counts | undefined => {
    const window = windowOf(now)
    return window === current.window ? current : window === other.window ? other : undefined
  }

  const enter = (now: number): Counts["byBucket"] => {
    const next = find(now) ?? countsOf(windowOf(now))
    if (next !== current) {
      if (next === other || distance(current, next) <= distance(other, next)) other = current
      current = next
    }
    return next.byBucket
  }

  const get = (bucket: Bucket, now: number): Count => find(now)?.byBucket.get(bucket) ?? none

  return {
    get,
    isFull: (bucket, limit, now) => get(bucket, now).total >= limit,
    take: (bucket, limit, now) => {
      const counts = enter(now)
      const { own, total } = counts.get(bucket) ?? none
      if (total >= limit) return false
      counts.set(bucket, { own: own + 1, total: total + 1 })
      return true
    },
    refund: (bucket, now) => {
      const { own, total } = get(bucket, now)
      if (total > 0) find(now)?.byBucket.set(bucket, { own: Math.max(own - 1, 0), total: total - 1 })
    },
    admit: (bucket, limit, reported, now) => {
      const counts = enter(now)
      const { own, total } = counts.get(bucket) ?? none
      if (own >= limit) return false
      counts.set(bucket, { own: own + 1, total: Math.max(total, reported, own + 1) })
      return true
    },
    raise: (bucket, reported, now) => {
      const counts = enter(now)
      const { own, total } = counts.get(bucket) ?? none
      if (reported > total) counts.set(bucket, { own, total: reported })
    }
  }
}
