/** The length in seconds of a window in which limiters count requests (specification 8). A window is a clock minute. */
export const windowSeconds = 60

/** Returns the seconds from `now` (milliseconds since the epoch) to the end of its clock minute, rounded up: 1 to 60. */
export const secondsUntilReset = (now: number): number =>
  windowSeconds - (Math.floor(now / 1000) % windowSeconds)

/** The scope of a rate limit: the requests of one key, or of all keys to this process (specification 8). */
export type RateLimitScope = "key" | "process"

/** An exceeded rate limit. `limit` is in requests per minute, and `retry_after` in seconds until the limit resets. */
export interface RateLimited {
  readonly _tag: "RateLimited"
  readonly scope: RateLimitScope
  readonly limit: number
  readonly retry_after: number
}

/** Returns the error of a limit that is exceeded at `now` (milliseconds since the epoch). */
export const RateLimited = (scope: RateLimitScope, limit: number, now: number): RateLimited => ({
  _tag: "RateLimited",
  scope,
  limit,
  retry_after: secondsUntilReset(now)
})
