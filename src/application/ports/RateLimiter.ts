import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId } from "../../domain/ApiKey.ts"

/** The counted requests: a key's requests to all instances that share a counter, or all requests to this process. */
export type CountScope = ApiKeyId | "process"

/**
 * Port: counts the requests of each clock minute (specification 8). Never fails. While a shared counter is unreachable,
 * this process counts alone. `now` is in milliseconds since the epoch.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Returns true if this process knows that the scope has reached `limit` in the minute of `now`. Does no I/O. If
     * other instances also count a key, this process can learn late that the key has reached `limit`.
     */
    readonly isExhausted: (scope: CountScope, limit: number, now: number) => boolean
    /** If the count of `now`'s minute is below `limit`, counts a request and returns true. Otherwise, returns false. */
    readonly take: (scope: CountScope, limit: number, now: number) => Effect.Effect<boolean>
    /**
     * Takes back one request that was counted in the minute of `now`, if there is such a request. Does not wait for a
     * shared counter.
     */
    readonly refund: (scope: CountScope, now: number) => Effect.Effect<void>
  }
>()("prompt-retrieval/application/ports/RateLimiter") {}
