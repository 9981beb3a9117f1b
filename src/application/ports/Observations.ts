import * as Context from "effect/Context"
import type { RateLimitScope } from "../../domain/time/RateWindow.ts"

/** The caches whose lookups are counted. */
export type ObservedCache = "keys" | "responses"

/** The outcome of a cache lookup: `drop` is an entry whose workspace has changed since it was stored. */
export type CacheLookup = "hit" | "miss" | "drop"

/**
 * Port: the events inside the service that operators count. Implementations return at once and never throw, because
 * they are called on every request.
 */
export class Observations extends Context.Service<
  Observations,
  {
    /** Reports one request that the rate limit of this scope rejected. */
    readonly recordRateLimitRejection: (scope: RateLimitScope) => void
    readonly recordCacheLookup: (cache: ObservedCache, result: CacheLookup) => void
    /** Reports one response from before the current outage, and its age in seconds. */
    readonly recordOutageResponse: (ageSeconds: number) => void
    /** Reports how long responses would still be served without the database, in seconds. */
    readonly setOutageSecondsLeft: (seconds: number) => void
  }
>()("prompt-retrieval/Observations") {}
