import * as Effect from "effect/Effect"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ChangeFeed, LastContact } from "../ports/ChangeFeed.ts"
import { registerCounter } from "../support/Observability.ts"

/**
 * The outcome of a cache lookup. `drop` means that the workspace of the entry has changed since the entry was stored,
 * or that the change feed is down.
 */
export type CacheLookup = "hit" | "miss" | "drop"

/** Registers the counters for the lookups in one cache. Returns the function that counts a lookup. */
export const registerLookupCounters = (cache: "keys" | "responses"): ((result: CacheLookup) => void) => {
  const register = (result: CacheLookup) =>
    registerCounter(
      "prompt_retrieval_cache_lookups_total",
      "Cache lookups: hit, miss, or drop (the workspace has changed since the entry was stored, or the change feed is down)",
      { cache, result }
    )
  const counters = { hit: register("hit"), miss: register("miss"), drop: register("drop") }
  return (result) => counters[result]()
}

/** A map, such as an LRU cache, that may evict any entry at any time. */
export interface BoundedMap<Key, Value> {
  get(key: Key): Value | undefined
  set(key: Key, value: Value): unknown
}

export interface Cacheable<Value> {
  readonly workspace: WorkspaceId
  readonly value: Value
}

/** A cached value and the revision of its workspace when the value was stored. */
export interface CacheEntry<Value> extends Cacheable<Value> {
  readonly revision: number
}

/**
 * Returns true if a value was current when the change feed last had contact with the database: the feed has reported no
 * change of the value's workspace since the value was stored.
 */
export const wasCurrentAt = (contact: LastContact, { workspace, revision }: CacheEntry<unknown>): boolean =>
  contact.revisionOf(workspace) === revision

/**
 * A cache that never returns a value from before the last reported change of the value's workspace. The methods `get`,
 * `peek`, `readWith` and `load` follow these rules:
 *
 * 1. Before a read starts, the cache takes the change feed's revision.
 * 2. The cache stores the result only if the result's workspace has not changed since the read started: the workspace's
 *    revision is not later than the revision of rule 1.
 * 3. The cache serves a value only while the value's workspace still has the revision that was stored with the value.
 * 4. While the change feed is down, the feed reports no revision, and the cache serves and stores nothing.
 *
 * Two exceptions do not use these methods. For MCP, `PromptCatalog` uses the names of a large workspace for a short
 * time even after a change. During an outage, `ResponseCache` and `CachingKeyStore` use entries that were current at
 * the last contact (`wasCurrentAt`).
 *
 * The cache does not join concurrent reads with the same key; `SingleFlight` joins them.
 */
export class RevisionedCache<Value> {
  readonly #feed: ChangeFeed["Service"]
  readonly #entries: BoundedMap<string, CacheEntry<Value>>
  readonly #onLookup: (result: CacheLookup) => void

  constructor(
    feed: ChangeFeed["Service"],
    entries: BoundedMap<string, CacheEntry<Value>>,
    onLookup: (result: CacheLookup) => void = () => {}
  ) {
    this.#feed = feed
    this.#entries = entries
    this.#onLookup = onLookup
  }

  /**
   * Returns the value of a key, or `undefined` if there is no value, the value's workspace has changed, or the change
   * feed is down.
   */
  get(key: string): Value | undefined {
    return this.#find(key)?.value
  }

  /** Like `get`, but does not count a lookup. */
  peek(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#isCurrent(entry) ? entry.value : undefined
  }

  /**
   * Runs `read` with the value of a key. Succeeds with `undefined` if `get` would return `undefined`. Also succeeds
   * with `undefined` if the value's workspace changed while `read` ran, because the result may then be newer than the
   * value.
   */
  readWith<A, E>(key: string, read: (value: Value) => Effect.Effect<A, E>): Effect.Effect<A | undefined, E> {
    return Effect.suspend(() => {
      const entry = this.#find(key)
      if (entry === undefined) return Effect.undefined
      return Effect.map(read(entry.value), (result) => (this.#isCurrent(entry) ? result : undefined))
    })
  }

  /**
   * Runs `read`. Stores the value that `toCacheable` makes from the result, if any, unless the value's workspace
   * changed during the read. `toCacheable` also gets the feed's revision from before the read.
   */
  load<A, E>(
    key: string,
    read: Effect.Effect<A, E>,
    toCacheable: (result: A, revisionAtStart: number | undefined) => Cacheable<Value> | undefined
  ): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const revisionAtStart = this.#feed.revision()
      return Effect.map(read, (result) => {
        const cacheable = toCacheable(result, revisionAtStart)
        if (cacheable !== undefined) this.#store(key, cacheable, revisionAtStart)
        return result
      })
    })
  }

  #find(key: string): CacheEntry<Value> | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) {
      this.#onLookup("miss")
      return undefined
    }
    if (!this.#isCurrent(entry)) {
      this.#onLookup("drop")
      return undefined
    }
    this.#onLookup("hit")
    return entry
  }

  #isCurrent({ workspace, revision }: CacheEntry<Value>): boolean {
    return this.#feed.revisionOf(workspace) === revision
  }

  #store(key: string, { workspace, value }: Cacheable<Value>, revisionAtStart: number | undefined): void {
    const revision = this.#feed.revisionOf(workspace)
    if (revisionAtStart === undefined || revision === undefined || revision > revisionAtStart) return
    this.#entries.set(key, { workspace, value, revision })
  }
}
