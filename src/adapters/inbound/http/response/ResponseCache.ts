import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import type { AdmittedCaller } from "../../../../application/Admission.ts"
import { type Cacheable, type CacheEntry, RevisionedCache } from "../../../../application/Freshness.ts"
import { Outage, type OutagePolicy } from "../../../../application/Outage.ts"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { Observations } from "../../../../application/ports/Observations.ts"
import { type HttpRequest, isGetOrHead } from "../HttpMessage.ts"
import { maxCachedBytes, type Representation, sharedMaxAgeSeconds } from "./Representation.ts"

/** Maximum size of all entries together, in bytes. */
const maxBytes = 32 * 1024 * 1024
/** The size of an entry without its body. */
const entryBytes = 1024
/**
 * The longest time that an entry is served while the database is there, in milliseconds. A hit does not extend that
 * time. For outages, older entries stay until newer ones need their memory, the least recently requested first.
 */
const maxAgeMs = sharedMaxAgeSeconds * 1_000

/** A 200 response, with the caller it was made for and the pattern of its route. */
export interface CachedResponse {
  readonly caller: AdmittedCaller
  readonly route: string
  /** When its request arrived, in milliseconds, by `performance.now()`. */
  readonly startedAt: number
  readonly representation: Representation
}

const toCacheable = (response: CachedResponse): Cacheable<CachedResponse> => ({
  workspace: response.caller.workspaceId,
  value: response
})

/**
 * Returns the cache key of a request: a hash of the exact bytes of its `Authorization` and its target. Requests
 * without `Authorization`, or with a method other than GET and HEAD, have none and are never served from the cache.
 */
export const toCacheKey = (request: HttpRequest): string | undefined => {
  const { authorization } = request.headers
  return authorization === undefined || !isGetOrHead(request)
    ? undefined
    : hash("sha256", `${authorization}\n${request.target}`, "base64url")
}

/**
 * Caches whole responses until something in their workspace changes (`RevisionedCache`). A cached response passed
 * every check of its request, and nothing in the workspace has changed since, so only the checks that depend on
 * time are left: the expiry of the key and the rate limits.
 */
export class ResponseCache {
  readonly #entries: LRUCache<string, CacheEntry<CachedResponse>>
  readonly #responses: RevisionedCache<CachedResponse>
  readonly #outage: OutagePolicy | undefined

  constructor(
    feed: ChangeFeed["Service"],
    observations: Observations["Service"],
    outage: OutagePolicy | undefined
  ) {
    this.#entries = new LRUCache<string, CacheEntry<CachedResponse>>({
      maxSize: maxBytes,
      maxEntrySize: maxCachedBytes,
      sizeCalculation: ({ value }) => value.representation.full.body.length + entryBytes,
      ttl: maxAgeMs,
      noDeleteOnStaleGet: outage !== undefined
    })
    this.#responses = new RevisionedCache(feed, this.#entries, (result) =>
      observations.recordCacheLookup("responses", result)
    )
    this.#outage = outage
  }

  /** Returns the response that is cached under a key, if it is current. */
  get(key: string | undefined): CachedResponse | undefined {
    return key === undefined ? undefined : this.#responses.get(key)
  }

  /** Returns the entry under a key, however old, if it may be served while the database does not respond. */
  findLastKnown(key: string | undefined): CacheEntry<CachedResponse> | undefined {
    if (key === undefined || this.#outage === undefined) return undefined
    const entry = this.#entries.peek(key, { allowStale: true })
    return entry !== undefined && this.#outage.isLastKnown(entry) ? entry : undefined
  }

  /** Runs `respond` and caches its response under a key, unless the workspace changed meanwhile. */
  load<E>(
    key: string | undefined,
    respond: Effect.Effect<CachedResponse, E>
  ): Effect.Effect<CachedResponse, E> {
    if (key === undefined) return respond
    return this.#responses.load(key, respond, (response, revisionAtStart) => {
      this.#reportDifference(key, response, revisionAtStart)
      return toCacheable(response)
    })
  }

  /** Reports a change that a fresh response shows before the change feed reports it, which it may never do. */
  #reportDifference(
    key: string,
    { representation }: CachedResponse,
    revisionAtStart: number | undefined
  ): void {
    const known = this.findLastKnown(key)
    // A response that is known since a later change was reported may be the newer one.
    if (known === undefined || known.revision > (revisionAtStart ?? known.revision)) return
    const { headers } = known.value.representation.full
    // The headers contain the ETag, and the version of a prompt, which a change may increase for the same body.
    const isSame = representation.full.headers.every((text, index) => text === headers[index])
    if (!isSame) this.#outage?.reportChange(known)
  }
}

/** Makes a response cache that the change feed keeps current. */
export const makeResponseCache = Effect.gen(function* () {
  return new ResponseCache(yield* ChangeFeed, yield* Observations, yield* Outage)
})
