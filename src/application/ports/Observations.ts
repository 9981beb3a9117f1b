import * as Context from "effect/Context"
import type { RateLimitScope } from "../../domain/time/RateWindow.ts"

/** The caches whose lookups are counted. */
export type ObservedCache = "keys" | "responses"

/**
 * The outcome of a cache lookup: `drop` means that the workspace of the entry has changed since the entry was stored.
 */
export type CacheLookup = "hit" | "miss" | "drop"

/**
 * Port: the events inside the service that operators count. Implementations return immediately and never throw, because
 * they are called on every request.
 */
export class Observations extends Context.Service<
  Observations,
  {
    /** Reports one request that the rate limit of this scope rejected. */
    readonly recordRateLimitRejection: (scope: RateLimitScope) => void
    readonly recordCacheLookup: (cache: ObservedCache, result: CacheLookup) => void
    /** Reports that one response from before the current outage was served, and its age in seconds. */
    readonly recordOutageResponse: (ageSeconds: number) => void
    /** Reports for how many more seconds responses can be served without the database. */
    readonly setOutageSecondsLeft: (seconds: number) => void
  }
>()("prompt-retrieval/Observations") {}
