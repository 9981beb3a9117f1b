import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { LRUCache } from "lru-cache"
import { type CacheEntry, wasCurrentAt } from "../../../application/Freshness.ts"
import type { OutagePolicy } from "../../../application/Outage.ts"
import type { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { authenticate, type InvalidKey, type KeyHash, type KeyRecord } from "../../../domain/ApiKey.ts"
import { checkAccess } from "../../../domain/Billing.ts"

/** Maximum size of all records together, in bytes. */
const maxBytes = 4 * 1024 * 1024
/** The size of a record with its hash, in bytes. */
const recordBytes = 1024

/** Returns true if a caller with this key is rejected before it can read. */
const isRefused = (record: KeyRecord, now: number): boolean => {
  const workspace = authenticate(record, now)
  return Result.isFailure(workspace) || checkAccess(workspace.success) !== undefined
}

type Lookup = Effect.Effect<KeyRecord, InvalidKey | Unavailable>

/**
 * Remembers the keys whose callers are rejected, so that they get the same response in an outage. A key that is not
 * rejected is not remembered: a lookup that fails must not admit its caller to a read that succeeds, because the key
 * may have been revoked meanwhile. What the caller may read in an outage is decided by the response that it got.
 */
export class RefusedKeys {
  readonly #feed: ChangeFeed["Service"]
  readonly #outage: OutagePolicy
  readonly #records = new LRUCache<string, CacheEntry<KeyRecord>>({
    maxSize: maxBytes,
    sizeCalculation: () => recordBytes
  })

  constructor(feed: ChangeFeed["Service"], outage: OutagePolicy) {
    this.#feed = feed
    this.#outage = outage
  }

  /** Runs a lookup. In an outage of the database, returns a record that is known to be refused instead. */
  find(hash: KeyHash, lookup: Lookup): Lookup {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const known = this.#findKnown(hash, now)
      if (known !== undefined && this.#outage.isServing()) return Effect.succeed(known)
      const startedAt = performance.now()
      const revisionAtStart = this.#feed.revision()
      const remembered = Effect.tap(lookup, (record) =>
        Effect.sync(() => this.#remember(hash, record, now, revisionAtStart))
      )
      if (known === undefined) return remembered
      return Effect.catchTag(
        Effect.raceFirst(remembered, Effect.as(this.#outage.begins, known)),
        "Unavailable",
        (error) =>
          Effect.flatMap(
            this.#outage.isContactLost(startedAt),
            (isLost): Lookup => (isLost ? Effect.succeed(known) : Effect.fail(error))
          )
      )
    })
  }

  /**
   * Returns a record that refuses its caller: one that was current at the last contact, or a revoked one, because a
   * revocation is not undone by other changes of the workspace.
   */
  #findKnown(hash: KeyHash, now: number): KeyRecord | undefined {
    const entry = this.#records.get(hash)
    const contact = this.#feed.lastContact()
    if (entry === undefined || contact === undefined || !isRefused(entry.value, now)) return undefined
    return entry.value.revoked || wasCurrentAt(contact, entry) ? entry.value : undefined
  }

  #remember(hash: KeyHash, record: KeyRecord, now: number, revisionAtStart: number | undefined): void {
    const { workspace } = record
    const revision = workspace === null ? undefined : this.#feed.lastContact()?.revisionOf(workspace.id)
    if (workspace === null || revision === undefined || !isRefused(record, now)) {
      this.#records.delete(hash)
      return
    }
    const isCurrent = revisionAtStart !== undefined && revision <= revisionAtStart
    // No workspace has the revision -1, so only a revocation counts in a record that may be out of date.
    this.#records.set(hash, { workspace: workspace.id, value: record, revision: isCurrent ? revision : -1 })
  }
}
