import * as Effect from "effect/Effect"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { metricRegistry, registerCounter } from "../observability/Instrumentation.ts"
import { type ChangeFeed, minPauseMs } from "../ports/ChangeFeed.ts"

type Feed = ChangeFeed["Service"]

/** Returns true if the feed is up: its revisions then include every change. Also records that the process is running. */
export const checkIsUp = ({ lease, running }: Feed): boolean => {
  const monotonic = performance.now()
  const wall = Date.now()
  if (lease === undefined || monotonic >= lease.monotonic || wall >= lease.wall) return false
  if (monotonic - running.monotonic > minPauseMs || wall - running.wall > minPauseMs) return false
  running.monotonic = monotonic
  running.wall = wall
  return true
}

/** Returns the revision of the last reported change to a workspace. */
export const revisionOf = ({ revisions, globalRevision }: Feed, workspace: WorkspaceId): number =>
  revisions.get(workspace) ?? globalRevision

// The storage, with a fair share for each workspace

/** An entry of `FairMap`: the workspace to which it belongs, and its size in any unit. */
interface FairEntry {
  readonly workspace: WorkspaceId
  readonly size: number
}

interface Share {
  size: number
  /** The keys of the workspace's entries, the oldest first. */
  readonly keys: Set<string>
}

/** The fraction that one eviction frees. Deleting a `Map`'s first entry makes the new first entry slower to find. */
const evictedFraction = 1 / 16

/**
 * A bounded map whose entries belong to workspaces. To make room for a new entry, the map evicts its oldest entries. If
 * the new entry's workspace would exceed an equal share of the map, the oldest entries of this workspace are evicted
 * first. So a workspace with many entries cannot evict the entries of other workspaces.
 */
class FairMap<Entry extends FairEntry> {
  readonly #maxSize: number
  readonly #maxEntrySize: number
  #size = 0
  /** The entries by key, the oldest first. */
  readonly #entries = new Map<string, Entry>()
  readonly #shares = new Map<WorkspaceId, Share>()

  /** The sizes of all entries together are at most `maxSize`. An entry larger than `maxEntrySize` is not stored. */
  constructor(maxSize: number, maxEntrySize: number) {
    this.#maxSize = maxSize
    this.#maxEntrySize = maxEntrySize
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  set(key: string, entry: Entry): void {
    this.#delete(key)
    if (entry.size > this.#maxEntrySize) return
    this.#makeRoom(entry)
    const share = this.#shares.get(entry.workspace) ?? { size: 0, keys: new Set() }
    this.#shares.set(entry.workspace, share)
    this.#entries.set(key, entry)
    this.#size += entry.size
    share.keys.add(key)
    share.size += entry.size
  }

  /** Evicts entries until a new entry fits. */
  #makeRoom({ workspace, size }: Entry): void {
    while (this.#size + size > this.#maxSize) {
      const share = this.#shares.get(workspace)
      const isAboveShare = share !== undefined && share.size + size > this.#maxSize / this.#shares.size
      if (isAboveShare) this.#evict(share.keys, share.size)
      else this.#evict(this.#entries.keys(), this.#size)
    }
  }

  /** Evicts the oldest entries of `keys`. `size` is the total size of these entries. */
  #evict(keys: Iterable<string>, size: number): void {
    const target = this.#size - evictedFraction * size
    for (const key of keys) {
      this.#delete(key)
      if (this.#size <= target) return
    }
  }

  /** Deletes all entries of a workspace. */
  deleteAll(workspace: WorkspaceId): void {
    for (const key of this.#shares.get(workspace)?.keys ?? []) this.#delete(key)
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key)
    const share = entry && this.#shares.get(entry.workspace)
    if (entry === undefined || share === undefined) return
    this.#entries.delete(key)
    this.#size -= entry.size
    share.keys.delete(key)
    share.size -= entry.size
    if (share.keys.size === 0) this.#shares.delete(entry.workspace)
  }
}

/** Makes the counters of a cache's lookups, by result. */
const makeLookupCounters = (cache: "keys" | "responses") => {
  const makeCounter = (result: "hit" | "miss" | "drop") =>
    registerCounter(
      "prompt_retrieval_cache_lookups_total",
      "Cache lookups: hit, miss, or drop (the entry is too old, its workspace has changed, or the change feed is down)",
      { cache, result }
    )
  return { hit: makeCounter("hit"), miss: makeCounter("miss"), drop: makeCounter("drop") }
}

export interface CacheLimits {
  /** The maximum total size of all values, in the unit of the cache. */
  readonly maxSize: number
  /** The maximum size of one value; by default `maxSize`. */
  readonly maxValueSize?: number
  /** How long a value is served, in milliseconds. Serving a value does not extend this time. */
  readonly maxAgeMs: number
}

export interface Cacheable<Value> {
  readonly workspace: WorkspaceId
  readonly value: Value
  readonly size: number
}

/**
 * A cached value, and the revision of its workspace in the change feed when the value was stored. An entry is:
 *
 * - current while the feed is up and the workspace still has this revision.
 * - fresh while it is current and at most `maxAgeMs` old.
 * - known if the workspace had this revision at the last contact with the database. An entry of any age can be known.
 */
interface CacheEntry<Value> extends FairEntry {
  readonly value: Value
  readonly revision: number
  /** The value of `performance.now()` when the value was stored. */
  readonly storedAt: number
  /** False if the value can be older than a discarded result. The cache only compares this value with later results. */
  readonly isConfirmed: boolean
}

/**
 * A bounded cache that never returns a value from before the last reported change to its workspace:
 *
 * 1. Before a read starts, the cache notes the change feed's revision.
 * 2. The cache stores the result only if its workspace has not changed since that revision. If another result was
 *    discarded during the read, the stored value is unconfirmed, because it can be older than that result.
 * 3. The cache serves only fresh entries. While the change feed is down, the cache serves and stores nothing.
 * 4. If a result contradicts the cached value of its key, the cache deletes all values of the workspace. Neither value
 *    is known to be newer: the feed can be late, and reads can reach the database out of order.
 *
 * Only `findLastKnown` returns known entries of any age, for responses during an outage of the database (`Outage`).
 */
export class RevisionedCache<Value> {
  readonly #feed: Feed
  readonly #maxAgeMs: number
  readonly #entries: FairMap<CacheEntry<Value>>
  /** Counts the events after which in-flight reads can return older values, so that their values are unconfirmed. */
  #refusals = 0
  readonly #isSame: (a: Value, b: Value) => boolean
  readonly #lookups: ReturnType<typeof makeLookupCounters> | undefined

  /**
   * @param isSame returns true if two values of a key do not contradict each other
   * @param name the label of this cache in the metrics of lookups; if absent, lookups are not counted
   */
  constructor(
    feed: Feed,
    { maxSize, maxValueSize = maxSize, maxAgeMs }: CacheLimits,
    isSame: (a: Value, b: Value) => boolean,
    name?: "keys" | "responses"
  ) {
    this.#feed = feed
    this.#maxAgeMs = maxAgeMs
    this.#entries = new FairMap(maxSize, maxValueSize)
    this.#isSame = isSame
    this.#lookups = name && makeLookupCounters(name)
  }

  /** Returns the value of a key if its entry is fresh, otherwise `undefined`. */
  get(key: string): Value | undefined {
    return this.#find(key)?.value
  }

  /** Returns the same value as `get`, but does not count a lookup. */
  peek(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#isFresh(entry) ? entry.value : undefined
  }

  /** Returns a function that returns the value of a key if its entry is fresh, and otherwise runs `read`. */
  through<Key extends string, E>(
    read: (key: Key) => Effect.Effect<Value, E>
  ): (key: Key) => Effect.Effect<Value, E> {
    return (key) => {
      const value = this.get(key)
      return value === undefined ? read(key) : Effect.succeed(value)
    }
  }

  /**
   * Passes the cached value of a key to `read`, and returns the result. Returns `undefined` if there is no value, or if
   * the workspace changed while `read` ran, because the result can then be newer than the value.
   */
  readWith<A, E>(key: string, read: (value: Value) => Effect.Effect<A, E>): Effect.Effect<A | undefined, E> {
    return Effect.suspend(() => {
      const entry = this.#find(key)
      if (entry === undefined) return Effect.undefined
      return Effect.map(read(entry.value), (result) =>
        this.#entries.get(key) === entry && this.#isCurrent(entry) ? result : undefined
      )
    })
  }

  /**
   * Runs `read`, and stores the value that `toCacheable` makes from the result, if any.
   *
   * @param isContradiction returns true if an error contradicts every value; by default, no error contradicts a value
   */
  load<A, E>(
    key: string,
    read: Effect.Effect<A, E>,
    toCacheable: (result: A) => Cacheable<Value> | undefined,
    isContradiction: (error: E) => boolean = () => false
  ): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const revisionAtStart = checkIsUp(this.#feed) ? this.#feed.latestRevision : Number.NEGATIVE_INFINITY
      const refusalsAtStart = this.#refusals
      const compare = (value: Value | undefined): void => {
        const entry = this.#entries.get(key)
        if (entry === undefined || entry.revision !== revisionOf(this.#feed, entry.workspace)) return
        if (value === undefined || !this.#isSame(entry.value, value)) this.invalidate(entry.workspace)
      }
      const store = (cacheable: Cacheable<Value>): void => {
        const revision = revisionOf(this.#feed, cacheable.workspace)
        const isCurrent = checkIsUp(this.#feed) && revision <= revisionAtStart
        const isConfirmed = refusalsAtStart === this.#refusals
        if (!isCurrent) this.#refusals++
        // A value that `read` took from this cache keeps its age. An unconfirmed value does not replace a known value.
        else if (isConfirmed ? this.peek(key) !== cacheable.value : this.findLastKnown(key) === undefined)
          this.#entries.set(key, { ...cacheable, revision, storedAt: performance.now(), isConfirmed })
      }
      return Effect.mapBoth(read, {
        onSuccess: (result) => {
          const cacheable = toCacheable(result)
          compare(cacheable?.value)
          if (cacheable !== undefined) store(cacheable)
          return result
        },
        onFailure: (error) => {
          if (isContradiction(error)) compare(undefined)
          return error
        }
      })
    })
  }

  /** Returns a known entry's value (see `CacheEntry`). */
  findLastKnown(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#isKnown(entry) ? entry.value : undefined
  }

  /** Deletes all values of a workspace. The values of in-flight reads become unconfirmed. */
  invalidate(workspace: WorkspaceId): void {
    this.#refusals++
    this.#entries.deleteAll(workspace)
  }

  #find(key: string): CacheEntry<Value> | undefined {
    const entry = this.#entries.get(key)
    const isFresh = entry !== undefined && this.#isFresh(entry)
    const result = !entry?.isConfirmed ? "miss" : isFresh ? "hit" : "drop"
    this.#lookups?.[result].updateUnsafe(1, metricRegistry)
    return isFresh ? entry : undefined
  }

  #isFresh(entry: CacheEntry<Value>): boolean {
    return this.#isCurrent(entry) && performance.now() - entry.storedAt <= this.#maxAgeMs
  }

  #isKnown({ workspace, revision, isConfirmed }: CacheEntry<Value>): boolean {
    return isConfirmed && revisionOf(this.#feed, workspace) === revision
  }

  #isCurrent(entry: CacheEntry<Value>): boolean {
    return this.#isKnown(entry) && checkIsUp(this.#feed)
  }
}
