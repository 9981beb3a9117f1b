import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LRUCache } from "lru-cache"
import {
  type Cacheable,
  type CacheEntry,
  RevisionedCache,
  SingleFlight
} from "../../../application/Freshness.ts"
import { Outage } from "../../../application/Outage.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { Observations } from "../../../application/ports/Observations.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { InvalidKey, KeyHash, KeyRecord } from "../../../domain/ApiKey.ts"
import { RefusedKeys } from "./RefusedKeys.ts"

const maxKeys = 10_000
const maxAgeMs = 10_000

/**
 * Caches the keys of another KeyStore. Only keys that exist and have a workspace are cached, so a flood of unknown
 * keys evicts nothing. Concurrent lookups of a key share one query, unless any workspace changed in between: the
 * key's workspace is unknown until the query returns. Keys that are refused are still refused in an outage.
 */
export const layer: Layer.Layer<KeyStore, never, KeyStore | ChangeFeed | Observations> = Layer.effect(
  KeyStore,
  Effect.gen(function* () {
    const store = yield* KeyStore
    const feed = yield* ChangeFeed
    const observations = yield* Observations
    const cache = new RevisionedCache(
      feed,
      new LRUCache<string, CacheEntry<KeyRecord>>({ max: maxKeys, ttl: maxAgeMs }),
      (result) => observations.recordCacheLookup("keys", result)
    )
    const lookups = new SingleFlight<KeyRecord, InvalidKey | Unavailable>(feed)
    const outage = yield* Outage
    /**
     * A key without a workspace is not cached, because no change would evict it; nor is a key that another lookup has
     * shown to be refused since this lookup started.
     */
    const makeToCacheable = (hash: KeyHash) => {
      const startedAt = performance.now()
      return (record: KeyRecord): Cacheable<KeyRecord> | undefined =>
        record.workspace === null || outage?.isRefused(hash, startedAt)
          ? undefined
          : { workspace: record.workspace.id, value: record }
    }
    const refusedKeys = outage === undefined ? undefined : new RefusedKeys(feed, outage)

    return KeyStore.of({
      find: (hash: KeyHash) => {
        const record = cache.get(hash)
        if (record !== undefined) return Effect.succeed(record)
        const lookup = lookups.run(hash, undefined, cache.load(hash, store.find(hash), makeToCacheable(hash)))
        return refusedKeys === undefined ? lookup : refusedKeys.find(hash, lookup)
      },
      markUsed: store.markUsed
    })
  })
)
