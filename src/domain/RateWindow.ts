const minute = 60_000

/** A clock minute, counted from the epoch: both rate limits count in these (SPEC.md section 8). */
export type RateWindow = number

/** The minute that holds an instant, given in milliseconds since the epoch. */
export const toRateWindow = (now: number): RateWindow => Math.floor(now / minute)

/** Whole seconds until the minute of `now` is over, 1 to 60: what `Retry-After` says. */
export const secondsLeft = (now: number): number =>
  Math.max(1, Math.ceil(((toRateWindow(now) + 1) * minute - now) / 1000))

/** A limit that is exceeded: which one, how many requests a minute it allows, and in how many seconds it resets. */
export interface RateLimited {
  readonly _tag: "RateLimited"
  readonly scope: "key" | "process"
  readonly limit: number
  readonly retry_after: number
}

export const rateLimited = (scope: RateLimited["scope"], limit: number, now: number): RateLimited => ({
  _tag: "RateLimited",
  scope,
  limit,
  retry_after: secondsLeft(now)
})
