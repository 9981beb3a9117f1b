import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Bucket, RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { toRateWindow } from "../../../domain/RateLimit.ts"

/** How many minutes keep their counts, for requests after the clock was set back. */
const maxWindows = 3

/** Counts requests in the memory of this process. `exhaust` makes a count reach `limit` in the minute of `now`. */
export const makeRateLimiter = (): RateLimiter["Service"] & {
  readonly exhaust: (bucket: Bucket, limit: number, now: number) => void
} => {
  const windows = new Map<number, Map<Bucket, number>>()

  const getCount = (bucket: Bucket, now: number): number => windows.get(toRateWindow(now))?.get(bucket) ?? 0

  const setCount = (bucket: Bucket, now: number, count: number): void => {
    const window = toRateWindow(now)
    const counts = windows.get(window) ?? new Map<Bucket, number>()
    windows.set(window, counts.set(bucket, count))
    // A map returns its keys in the order of insertion.
    const [oldest = window] = windows.keys()
    if (windows.size > maxWindows) windows.delete(oldest)
  }

  return {
    isExhausted: (bucket, limit, now) => getCount(bucket, now) >= limit,
    take: (bucket, limit, now) =>
      Effect.sync(() => {
        const count = getCount(bucket, now)
        if (count >= limit) return false
        setCount(bucket, now, count + 1)
        return true
      }),
    refund: (bucket, now) => {
      const count = getCount(bucket, now)
      if (count > 0) setCount(bucket, now, count - 1)
    },
    exhaust: (bucket, limit, now) => setCount(bucket, now, limit)
  }
}

/** Counts requests in the memory of this process, for a service without a shared counter. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, makeRateLimiter)
