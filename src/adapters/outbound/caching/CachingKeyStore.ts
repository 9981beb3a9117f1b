import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { LRUCache } from "lru-cache"
import {
  type Cacheable,
  type CacheEntry,
  registerLookupCounters,
  RevisionedCache
} from "../../../application/freshness/RevisionedCache.ts"
import { Outage } from "../../../application/freshness/Outage.ts"
import { SingleFlight } from "../../../application/freshness/SingleFlight.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { authenticate, type InvalidKey, type KeyHash, type KeyRecord } from "../../../domain/ApiKey.ts"
import { checkAccess } from "../../../domain/Billing.ts"

const countLookup = registerLookupCounters("keys")

/** Maximum number of cached keys. A cached key takes less than 1 KiB. */
const maxKeys = 10_000

/**
 * Returns true if a request with this key is rejected, by authentication or because of the workspace's tier or billing
 * status.
 */
const isRejected = (record: KeyRecord, now: number): boolean => {
  const workspace = authenticate(record, now)
  return Result.isFailure(workspace) || checkAccess(workspace.success) !== undefined
}

/**
 * Caches the keys of another KeyStore. A key stays cached until the change feed reports a change of its workspace, or
 * until more recently used keys evict it. Unknown keys and keys without a workspace are not cached, so a flood of
 * unknown keys evicts nothing. Concurrent lookups of a key share one query. A lookup that starts after a change of any
 * workspace never joins an earlier query, because the workspace of the key is unknown until the query returns.
 *
 * During an outage, a cached key that was rejected at the last contact with the database is still rejected. While the
 * database does not respond, the lookup of any other key fails, so callers with other keys get only known responses.
 */
export const layer: Layer.Layer<KeyStore, never, KeyStore | ChangeFeed | Outage> = Layer.effect(
  KeyStore,
  Effect.gen(function* () {
    const store = yield* KeyStore
    const feed = yield* ChangeFeed
    const outage = yield* Outage
    const entries = new LRUCache<string, CacheEntry<KeyRecord>>({ max: maxKeys })
    const cache = new RevisionedCache(feed, entries, countLookup)
    const lookups = new SingleFlight<KeyRecord, InvalidKey | Unavailable>(feed, outage.protect)

    /**
     * Returns the value to cache, or `undefined` for a key without a workspace: the change feed reports changes by
     * workspace, so no change would evict that key.
     */
    const toCacheable = (record: KeyRecord): Cacheable<KeyRecord> | undefined =>
      record.workspace === null ? undefined : { workspace: record.workspace.id, value: record }

    const lookUp = (hash: KeyHash) => {
      // Deletes the earlier entry of the key after each successful query, even if the new result is not cacheable.
      const read = Effect.tap(store.find(hash), () => Effect.sync(() => entries.delete(hash)))
      return lookups.run(hash, undefined, cache.load(hash, read, toCacheable))
    }

    return KeyStore.of({
      find: (hash: KeyHash) => {
        const record = cache.get(hash)
        if (record !== undefined) return Effect.succeed(record)
        const known = entries.peek(hash)
        if (known === undefined || !outage.isLastKnown(known)) return lookUp(hash)
        return Effect.flatMap(Clock.currentTimeMillis, (now) =>
          isRejected(known.value, now)
            ? outage.orKnown(lookUp(hash), Effect.succeed(known.value))
            : lookUp(hash)
        )
      },
      markUsed: store.markUsed
    })
  })
)
