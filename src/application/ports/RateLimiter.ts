import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "../../domain/ApiKey.ts"

/** Requests that are counted together: those of a key, on all instances that share a counter, or of this process. */
export type Bucket = ApiKeyId | "process"

/**
 * Port: counts requests in clock minutes (specification 8). Never fails: while a shared counter cannot be reached, this
 * process counts alone. `now` is in milliseconds since the epoch.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Returns true if the bucket is known to have reached `limit` in the minute of `now`. Does no I/O. The result is
     * exact for "process". For a key that other instances count too, `false` means "not known to be exhausted".
     */
    readonly isKnownExhausted: (bucket: Bucket, limit: number, now: number) => boolean
    /** Counts one request in the minute of `now` and returns true, or returns false if the count is at `limit`. */
    readonly take: (bucket: Bucket, limit: number, now: number) => Effect.Effect<boolean>
    /**
     * Takes back one request that was counted in the minute of `now`. Has no effect if no request was counted in that
     * minute. Does not wait for a shared counter, and does not affect later minutes.
     */
    readonly refund: (bucket: Bucket, now: number) => Effect.Effect<void>
  }
>()("prompt-retrieval/RateLimiter") {}
