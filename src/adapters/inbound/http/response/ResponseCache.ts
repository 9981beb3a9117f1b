import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import type { AdmittedCaller } from "../../../../application/access/Admission.ts"
import { type CacheEntry, RevisionedCache } from "../../../../application/freshness/Freshness.ts"
import { Outage } from "../../../../application/freshness/Outage.ts"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { Observations } from "../../../../application/ports/Observations.ts"
import { type HttpRequest, isGetOrHead } from "../../contract/HttpMessage.ts"
import { maxCachedBytes, type Representation, sharedMaxAgeSeconds } from "./Representation.ts"

/** Maximum size of all entries together, in bytes. */
const maxBytes = 32 * 1024 * 1024
/** The size of an entry without its body. */
const entryBytes = 1024
/**
 * The longest time that an entry is served while the database is reachable, in milliseconds. A hit does not extend
 * that time. For outages, older entries stay until newer entries need the memory; the least recently requested
 * entries are evicted first.
 */
const maxAgeMs = sharedMaxAgeSeconds * 1_000

/** A 200 response, with the caller it was made for and the pattern of its route. */
export interface CachedResponse {
  readonly caller: AdmittedCaller
  readonly route: string
  readonly representation: Representation
}

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
  readonly #outage: Outage["Service"]
  /** The cache keys of the entries of each key and each workspace. */
  readonly #keysOf = new Map<string, Set<string>>()
  /** How many times entries were deleted because a read had shown a change. */
  #deletions = 0

  constructor(feed: ChangeFeed["Service"], observations: Observations["Service"], outage: Outage["Service"]) {
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
        // A response that is too large is not stored.
        if (this.#entries.has(key)) this.#addToIndex(key, entry.value)
      }
    }
    this.#responses = new RevisionedCache(feed, entries, (result) =>
      observations.recordCacheLookup("responses", result)
    )
    this.#outage = outage
    outage.onInvalidate((changed) => this.#deleteAllOf(changed))
  }

  /** Returns the response that is cached under a key, if it is current. */
  get(key: string | undefined): CachedResponse | undefined {
    return key === undefined ? undefined : this.#responses.get(key)
  }

  /** Like `get`, without counting a lookup. */
  peek(key: string | undefined): CachedResponse | undefined {
    return key === undefined ? undefined : this.#responses.peek(key)
  }

  /** Returns the entry under a key, however old, if it may be served while the database does not respond. */
  findLastKnown(key: string | undefined): CacheEntry<CachedResponse> | undefined {
    const entry = key === undefined ? undefined : this.#entries.peek(key, { allowStale: true })
    return entry !== undefined && this.#outage.isLastKnown(entry) ? entry : undefined
  }

  /**
   * Runs `respond` and caches its response under a key, unless the workspace changed meanwhile. A response that
   * differs from the last known response shows a change that the feed has not reported. Because either response may be
   * the newer, the cache keeps neither.
   */
  load<E>(
    key: string | undefined,
    respond: Effect.Effect<CachedResponse, E>
  ): Effect.Effect<CachedResponse, E> {
    if (key === undefined) return respond
    return Effect.suspend(() => {
      const deletionsAtStart = this.#deletions
      return this.#responses.load(key, respond, (response, revisionAtStart) => {
        // A response that another request has cached meanwhile is not stored again: its age would start again.
        if (response === this.#entries.peek(key)?.value) return undefined
        const workspace = response.caller.workspaceId
        if (this.#isChanged(key, response, revisionAtStart)) this.#outage.invalidate(workspace)
        return this.#deletions === deletionsAtStart ? { workspace, value: response } : undefined
      })
    })
  }

  #isChanged(key: string, { representation }: CachedResponse, revisionAtStart: number | undefined): boolean {
    const known = this.findLastKnown(key)
    // A response that is known since a later change was reported may be the newer one.
    if (known === undefined || known.revision > (revisionAtStart ?? known.revision)) return false
    const { headers } = known.value.representation.full
    // The headers contain the ETag, and the version of a prompt, which a change may increase for the same body.
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

/** Makes a response cache that the change feed keeps current. */
export const makeResponseCache = Effect.gen(function* () {
  return new ResponseCache(yield* ChangeFeed, yield* Observations, yield* Outage)
})
