import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type CountScope, RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { windowSeconds } from "../../../domain/RateLimit.ts"

/** Returns the clock minute that contains `now` (milliseconds since the epoch), in minutes since the epoch. */
export const toRateWindow = (now: number): number => Math.floor(now / (windowSeconds * 1000))

/** The number of minutes to keep counts for, because a clock that is set back returns to an earlier minute. */
const maxWindows = 3

/** Counts requests in the memory of this process. */
export const makeRateLimiter = (): RateLimiter["Service"] => {
  const windows = new Map<number, Map<CountScope, number>>()

  const getCount = (scope: CountScope, now: number): number => windows.get(toRateWindow(now))?.get(scope) ?? 0

  const setCount = (scope: CountScope, now: number, count: number): void => {
    const window = toRateWindow(now)
    const counts = windows.get(window) ?? new Map<CountScope, number>()
    windows.set(window, counts.set(scope, count))
    // A map returns its keys in the order of insertion.
    const [oldest = window] = windows.keys()
    if (windows.size > maxWindows) windows.delete(oldest)
  }

  return {
    isExhausted: (scope, limit, now) => getCount(scope, now) >= limit,
    take: (scope, limit, now) =>
      Effect.sync(() => {
        const count = getCount(scope, now)
        if (count >= limit) return false
        setCount(scope, now, count + 1)
        return true
      }),
    refund: (scope, now) =>
      Effect.sync(() => {
        const count = getCount(scope, now)
        if (count > 0) setCount(scope, now, count - 1)
      })
  }
}

/** Counts requests in the memory of this process, for a service without a shared counter. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, makeRateLimiter)
