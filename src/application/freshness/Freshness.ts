import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ChangeFeed, LastContact } from "../ports/ChangeFeed.ts"
import type { CacheLookup } from "../ports/Observations.ts"

/** A map, such as an LRU cache, that may evict any entry at any time. */
export interface BoundedMap<Key, Value> {
  get(key: Key): Value | undefined
  set(key: Key, value: Value): unknown
}

/** A value that belongs to a workspace. */
export interface Cacheable<Value> {
  readonly workspace: WorkspaceId
  readonly value: Value
}

/** A cached value and the revision of its workspace when the value was stored. */
export interface CacheEntry<Value> extends Cacheable<Value> {
  readonly revision: number
}

/**
 * Returns true if a value was current when the change feed last had contact with the database: no change of its
 * workspace has been reported since the value was stored.
 */
export const wasCurrentAt = (contact: LastContact, { workspace, revision }: CacheEntry<unknown>): boolean =>
  contact.revisionOf(workspace) === revision

/**
 * A cache that never returns a value from before the last known change of the value's workspace. Every cache of the
 * service follows these rules:
 *
 * 1. A read takes the change feed's revision before it starts.
 * 2. The result is stored only if its workspace has not changed since: the workspace's revision is not later than the
 *    revision that was taken.
 * 3. A stored value is served only while its workspace still has the revision that the value was stored with.
 * 4. While the change feed is down, it reports no revision: nothing is served or stored.
 *
 * The cache does not join concurrent reads with the same key; `SingleFlight` does.
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

  /** Returns the value of a key, or `undefined` if there is no value or the value's workspace has changed. */
  get(key: string): Value | undefined {
    return this.#find(key)?.value
  }

  /** Like `get`, without counting a lookup. */
  peek(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#isCurrent(entry) ? entry.value : undefined
  }

  /**
   * Runs `read` with the value of a key. Succeeds with `undefined` if there is no value, or if its workspace changed
   * while `read` ran, because the result may be newer than the value.
   */
  readWith<A, E>(key: string, read: (value: Value) => Effect.Effect<A, E>): Effect.Effect<A | undefined, E> {
    return Effect.suspend(() => {
      const entry = this.#find(key)
      if (entry === undefined) return Effect.undefined
      return Effect.map(read(entry.value), (result) => (this.#isCurrent(entry) ? result : undefined))
    })
  }

  /**
   * Runs `read` and stores the value that `toCacheable` returns, unless its workspace changed meanwhile. `toCacheable`
   * also gets the revision from before the read.
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

interface InFlightRead<A, E> {
  /** The revision when the read started. */
  readonly revision: number
  /** The outcome of the read; undefined until a second caller waits for it. */
  outcome: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/**
 * Runs concurrent reads with the same cache key once. A read that is requested after a change never joins a read
 * that started before the change. While the change feed is down, reads are not shared.
 *
 * Key lookups and reads of prompts are shared. Whole responses are not: each request counts against the rate
 * limits.
 */
export class SingleFlight<A, E> {
  readonly #feed: ChangeFeed["Service"]
  readonly #inFlight = new Map<string, InFlightRead<A, E>>()

  constructor(feed: ChangeFeed["Service"]) {
    this.#feed = feed
  }

  /**
   * Runs `read`, or waits for the in-flight read of the same key if nothing has changed since that read started.
   * Only changes of `workspace` count; if the workspace is not known before the read, every change counts. If the
   * caller whose read is in flight is interrupted, one of the waiting callers starts over.
   */
  run(key: string, workspace: WorkspaceId | undefined, read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const revision = workspace === undefined ? this.#feed.revision() : this.#feed.revisionOf(workspace)
      if (revision === undefined) return read
      // Uninterruptible between registering the read and attaching its cleanup.
      return Effect.uninterruptibleMask((restore) => {
        const other = this.#inFlight.get(key)
        if (other?.revision === revision) {
          other.outcome ??= Deferred.makeUnsafe()
          return Effect.flatMap(restore(Deferred.await(other.outcome)), (exit) =>
            Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
              ? restore(this.run(key, workspace, read))
              : exit
          )
        }
        const own: InFlightRead<A, E> = { revision, outcome: undefined }
        this.#inFlight.set(key, own)
        return Effect.onExit(restore(read), (exit) => {
          if (this.#inFlight.get(key) === own) this.#inFlight.delete(key)
          return own.outcome === undefined ? Effect.void : Deferred.succeed(own.outcome, exit)
        })
      })
    })
  }
}
