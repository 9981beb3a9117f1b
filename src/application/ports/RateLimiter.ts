import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "../../domain/ApiKey.ts"

/**
 * The requests that are counted together: those of one key (on all instances, if they share a counter), or those of
 * this process.
 */
export type Bucket = ApiKeyId | "process"

/**
 * Port: counts requests in clock minutes (specification 8). Never fails: while a shared counter cannot be reached,
 * this process counts alone. `now` is in milliseconds since the epoch.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Returns, without I/O, whether the bucket is known to have reached `limit` in the minute of `now`. Exact for
     * "process"; for a key that other instances count too, `false` means "not known to be exhausted".
     */
    readonly isKnownExhausted: (bucket: Bucket, limit: number, now: number) => boolean
    /** Counts one request in the minute of `now` and returns true, or returns false if the count is at `limit`. */
    readonly take: (bucket: Bucket, limit: number, now: number) => Effect.Effect<boolean>
    /**
     * Refunds one request in the minute of `now`, if any was counted in that minute, without waiting for a shared
     * counter. Later minutes are not affected.
     */
    readonly refund: (bucket: Bucket, now: number) => Effect.Effect<void>
  }
>()("prompt-retrieval/RateLimiter") {}
