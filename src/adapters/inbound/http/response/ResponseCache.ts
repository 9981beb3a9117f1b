import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import type { AdmittedCaller } from "../../../../application/Admission.ts"
import { type Cacheable, type CacheEntry, RevisionedCache } from "../../../../application/Freshness.ts"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { Observations } from "../../../../application/ports/Observations.ts"
import { type HttpRequest, isGetOrHead } from "../HttpMessage.ts"
import { maxCachedBytes, type Representation, sharedMaxAgeSeconds } from "./Representation.ts"

/** The size of all entries, in bytes. */
const maxBytes = 32 * 1024 * 1024
/** The size of an entry without its body. */
const entryBytes = 1024
/** A hit does not extend it. */
const maxAgeMs = sharedMaxAgeSeconds * 1_000

/** A 200 response, with the caller it was made for and the pattern of its route. */
export interface CachedResponse {
  readonly caller: AdmittedCaller
  readonly route: string
  readonly representation: Representation
}

const toCacheable = (response: CachedResponse): Cacheable<CachedResponse> => ({
  workspace: response.caller.workspaceId,
  value: response
})

/**
 * Returns the cache key of a request: a hash of the exact bytes of its `Authorization` and its target. Requests without
 * `Authorization`, or with a method other than GET and HEAD, have none and are never served from the cache.
 */
export const toCacheKey = (request: HttpRequest): string | undefined => {
  const { authorization } = request.headers
  return authorization === undefined || !isGetOrHead(request)
    ? undefined
    : hash("sha256", `${authorization}\n${request.target}`, "base64url")
}

/**
 * Caches whole responses until something in their workspace changes (`RevisionedCache`). A cached response passed every
 * check of its request, and nothing that the checks depend on has changed since, so only the rate limits are left.
 */
export class ResponseCache {
  readonly #responses: RevisionedCache<CachedResponse>

  constructor(feed: ChangeFeed["Service"], observations: Observations["Service"]) {
    this.#responses = new RevisionedCache(
      feed,
      new LRUCache<string, CacheEntry<CachedResponse>>({
        maxSize: maxBytes,
        maxEntrySize: maxCachedBytes,
        sizeCalculation: ({ value }) => value.representation.full.body.length + entryBytes,
        ttl: maxAgeMs
      }),
      (result) => observations.recordCacheLookup("responses", result)
    )
  }

  /** Returns the response that is cached under a key, if it is current. */
  get(key: string | undefined): CachedResponse | undefined {
    return key === undefined ? undefined : this.#responses.get(key)
  }

  /** Runs `respond` and caches its response under a key, unless the workspace changed meanwhile. */
  load<E>(
    key: string | undefined,
    respond: Effect.Effect<CachedResponse, E>
  ): Effect.Effect<CachedResponse, E> {
    return key === undefined ? respond : this.#responses.load(key, respond, toCacheable)
  }
}

/** Makes a response cache that the change feed keeps current. */
export const makeResponseCache = Effect.gen(function* () {
  return new ResponseCache(yield* ChangeFeed, yield* Observations)
})
