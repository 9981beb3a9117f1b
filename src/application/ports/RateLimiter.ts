import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "../../domain/ApiKey.ts"

/** The scope of a count: the requests of a key, on all instances that share a counter, or of this process. */
export type CountScope = ApiKeyId | "process"

/**
 * Port: counts requests in clock minutes (specification 8). Never fails: while a shared counter cannot be reached, this
 * process counts alone. `now` is in milliseconds since the epoch.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Returns true if this process knows that the scope has reached `limit` in the minute of `now`. Does no I/O. A key
     * that other instances count too may be exhausted before this process knows it.
     */
    readonly isExhausted: (scope: CountScope, limit: number, now: number) => boolean
    /** Counts one request in the minute of `now` and returns true, or returns false if the count is at `limit`. */
    readonly take: (scope: CountScope, limit: number, now: number) => Effect.Effect<boolean>
    /**
     * Takes back one request that was counted in the minute of `now`, if there is one. Does not wait for a shared
     * counter.
     */
    readonly refund: (scope: CountScope, now: number) => Effect.Effect<void>
  }
>()("prompt-retrieval/RateLimiter") {}
