import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "../../domain/ApiKey.ts"

/** What a limit counts for: one key, on all instances together where they share a counter, or this process. */
export type Bucket = ApiKeyId | "process"

/**
 * Port: counts requests in clock minutes (SPEC.md section 8). It never fails: a counter that can't be reached is
 * replaced by one in this process. `now` is in milliseconds since the epoch.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Whether this process, asking nobody, knows that the bucket has reached `limit` in the minute of `now`. It is
     * right for "process"; for a key that other instances count too, false may only mean that they know better.
     */
    readonly isKnownExhausted: (bucket: Bucket, limit: number, now: number) => boolean
    /** Counts one request in the minute of `now` and gives true, or gives false and counts nothing at `limit`. */
    readonly take: (bucket: Bucket, limit: number, now: number) => Effect.Effect<boolean>
    /**
     * Takes back one request that was counted in the minute of `now`, if there is one; waits for nobody. Once that
     * minute is over it changes nothing that is still counted.
     */
    readonly refund: (bucket: Bucket, now: number) => Effect.Effect<void>
  }
>()("prompt-retrieval/RateLimiter") {}
