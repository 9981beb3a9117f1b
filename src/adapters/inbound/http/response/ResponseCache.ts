import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import type { AdmittedCaller } from "../../../../application/access/Admission.ts"
import {
  type CacheEntry,
  RevisionedCache,
  registerLookupCounters
} from "../../../../application/freshness/RevisionedCache.ts"
import { Outage } from "../../../../application/freshness/Outage.ts"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { type HttpRequest, isGetOrHead } from "../../contract/HttpMessage.ts"
import { maxCachedBytes, type Representation, sharedMaxAgeSeconds } from "./Representation.ts"

const countLookup = registerLookupCounters("responses")

/** Maximum size of all entries together, in bytes. */
const maxBytes = 32 * 1024 * 1024
/** The approximate size of an entry without its body, in bytes. */
const entryBytes = 1024
/**
 * The longest time that an entry is served while the database is reachable, in milliseconds. A hit does not extend this
 * time. Older entries stay in memory for outages, until newer entries need the memory. The least recently requested
 * entries are evicted first.
 */
const maxAgeMs = sharedMaxAgeSeconds * 1_000

/** A representation, the caller for whom it was read, and the pattern of the route. */
export interface CachedResponse {
  readonly caller: AdmittedCaller
  readonly route: string
  readonly representation: Representation
}

/**
 * Returns the cache key of a request: a hash of the exact bytes of its `Authorization` header and its target. Returns
 * `undefined` for a request without `Authorization`, or with a method other than GET and HEAD. Such requests are never
 * served from the cache.
 */
export const toCacheKey = (request: HttpRequest): string | undefined => {
  const { authorization } = request.headers
  return authorization === undefined || !isGetOrHead(request)
    ? undefined
    : hash("sha256", `${authorization}\n${request.target}`, "base64url")
}

/**
 * Caches whole responses until something in their workspace changes (`RevisionedCache`), and for at most `maxAgeMs`. A
 * request passes every check before its response is cached. While nothing in the workspace changes, only two checks can
 * fail, because they depend on the time: the expiry of the key and the rate limits.
 */
export class ResponseCache {
  readonly #entries: LRUCache<string, CacheEntry<CachedResponse>>
  readonly #responses: RevisionedCache<CachedResponse>
  readonly #outage: Outage["Service"]
  /** Maps the hash of each API key, and the id of each workspace, to the cache keys of its entries. */
  readonly #keysOf = new Map<string, Set<string>>()
  /** The number of times that entries were deleted because `Outage` reported a change or a rejection. */
  #deletions = 0

  constructor(feed: ChangeFeed["Service"], outage: Outage["Service"]) {
    this.#entries = new LRUCache<string, CacheEntry<CachedResponse>>({
      maxSize: maxBytes,
      maxEntrySize: maxCachedBytes,
      sizeCalculation: ({ value }) => value.representation.full.body.length + entryBytes,
      ttl: maxAgeMs,
      noDeleteOnStaleGet: true,
      dispose: ({ value }, key) => this.#removeFromIndex(key, value)
    })
    const entries = {
      get: (key: string) => this.#entries.get(key),
      set: (key: string, entry: CacheEntry<CachedResponse>) => {
        this.#entries.set(key, entry)
        // The LRU cache does not store a response that is too large.
        if (this.#entries.has(key)) this.#addToIndex(key, entry.value)
      }
    }
    this.#responses = new RevisionedCache(feed, entries, countLookup)
    this.#outage = outage
    outage.onInvalidate((changed) => this.#deleteAllOf(changed))
  }

  /** Returns the cached response of a cache key, if the response is current. */
  get(key: string | undefined): CachedResponse | undefined {
    return key === undefined ? undefined : this.#responses.get(key)
  }

  /** Like `get`, without counting a lookup. */
  peek(key: string | undefined): CachedResponse | undefined {
    return key === undefined ? undefined : this.#responses.peek(key)
  }

  /** Returns the entry of a cache key, of any age, if it was current at the last contact with the database. */
  findLastKnown(key: string | undefined): CacheEntry<CachedResponse> | undefined {
    const entry = key === undefined ? undefined : this.#entries.peek(key, { allowStale: true })
    return entry !== undefined && this.#outage.isLastKnown(entry) ? entry : undefined
  }

  /**
   * Runs `respond`, and caches its response if the workspace has not changed meanwhile. If the response differs from
   * the last known response, something has changed that the feed has not reported. Either of the two responses may be
   * the newer response, so the cache keeps neither.
   */
  load<E>(
    key: string | undefined,
    respond: Effect.Effect<CachedResponse, E>
  ): Effect.Effect<CachedResponse, E> {
    if (key === undefined) return respond
    return Effect.suspend(() => {
      const deletionsAtStart = this.#deletions
      return this.#responses.load(key, respond, (response, revisionAtStart) => {
        // If another request cached the same response meanwhile, a second store would restart the response's age.
        if (response === this.#entries.peek(key)?.value) return undefined
        const workspace = response.caller.workspaceId
        if (this.#isChanged(key, response, revisionAtStart)) this.#outage.invalidate(workspace)
        return this.#deletions === deletionsAtStart ? { workspace, value: response } : undefined
      })
    })
  }

  #isChanged(key: string, { representation }: CachedResponse, revisionAtStart: number | undefined): boolean {
    const known = this.findLastKnown(key)
    // A known response may be newer if it was stored after a change that was reported during this read.
    if (known === undefined || known.revision > (revisionAtStart ?? known.revision)) return false
    const { headers } = known.value.representation.full
    // The headers contain the ETag, and the prompt's version, which can change while the body does not.
    return !representation.full.headers.every((text, index) => text === headers[index])
  }

  #deleteAllOf(changed: string): void {
    const keys = this.#keysOf.get(changed)
    if (keys === undefined) return
    this.#deletions++
    for (const key of [...keys]) this.#entries.delete(key)
  }

  #addToIndex(key: string, { caller }: CachedResponse): void {
    for (const name of [caller.keyHash, caller.workspaceId]) {
      const keys = this.#keysOf.get(name)
      if (keys === undefined) this.#keysOf.set(name, new Set([key]))
      else keys.add(key)
    }
  }

  #removeFromIndex(key: string, { caller }: CachedResponse): void {
    for (const name of [caller.keyHash, caller.workspaceId]) {
      const keys = this.#keysOf.get(name)
      keys?.delete(key)
      if (keys?.size === 0) this.#keysOf.delete(name)
    }
  }
}

export const makeResponseCache = Effect.gen(function* () {
  return new ResponseCache(yield* ChangeFeed, yield* Outage)
})
