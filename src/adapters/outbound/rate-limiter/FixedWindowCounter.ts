import { type RateWindow, toRateWindow } from "../../../domain/RateWindow.ts"
import type { Bucket } from "../../../application/ports/RateLimiter.ts"

/**
 * Counts in this process, by clock minute; `now` is in milliseconds since the epoch. It holds the minute that was
 * counted in last and the nearest one before or after it, and forgets every other: a clock that steps back over a
 * minute's edge, or a count that comes late, finds that minute's counts as they were.
 */
export interface FixedWindowCounter {
  /** Whether the bucket has reached `limit`. */
  readonly isKnownExhausted: (bucket: Bucket, limit: number, now: number) => boolean
  /** Counts one and gives true, or gives false and counts nothing at `limit`. */
  readonly take: (bucket: Bucket, limit: number, now: number) => boolean
  /** Takes one back, down to none. */
  readonly refund: (bucket: Bucket, now: number) => void
  /** Raises a count to what another counter says that it is at least. */
  readonly raiseTo: (bucket: Bucket, count: number, now: number) => void
}

interface Counts {
  readonly window: RateWindow
  readonly byBucket: Map<Bucket, number>
}

const countsOf = (window: RateWindow): Counts => ({ window, byBucket: new Map() })

const distance = (a: Counts, b: Counts): number => Math.abs(a.window - b.window)

export const makeFixedWindowCounter = (): FixedWindowCounter => {
  let current = countsOf(Number.NEGATIVE_INFINITY)
  let other = current

  const find = (now: number): Counts | undefined => {
    const window = toRateWindow(now)
    return window === current.window ? current : window === other.window ? other : undefined
  }

  const enter = (now: number): Counts["byBucket"] => {
    const next = find(now) ?? countsOf(toRateWindow(now))
    if (next !== current) {
      if (next === other || distance(current, next) <= distance(other, next)) other = current
      current = next
    }
    return next.byBucket
  }

  return {
    isKnownExhausted: (bucket, limit, now) => (find(now)?.byBucket.get(bucket) ?? 0) >= limit,
    take: (bucket, limit, now) => {
      const counts = enter(now)
      const count = counts.get(bucket) ?? 0
      if (count >= limit) return false
      counts.set(bucket, count + 1)
      return true
    },
    refund: (bucket, now) => {
      const counts = find(now)?.byBucket
      const count = counts?.get(bucket) ?? 0
      if (count > 0) counts?.set(bucket, count - 1)
    },
    raiseTo: (bucket, count, now) => {
      const counts = enter(now)
      if (count > (counts.get(bucket) ?? 0)) counts.set(bucket, count)
    }
  }
}
