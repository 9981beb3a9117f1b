import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { authorize, type KeyRecord } from "../../domain/ApiKey.ts"
import { ChangeFeed } from "../ports/ChangeFeed.ts"
import { KeyStore } from "../ports/KeyStore.ts"
import { AcceptedKeys, Outage } from "./Outage.ts"
import { type Cacheable, checkIsUp, RevisionedCache } from "./RevisionedCache.ts"

/** `maxSize` is a number of keys. Each key takes less than 1 KiB of memory. */
const limits = { maxSize: 10_000, maxAgeMs: 60_000 }

/** Returns true if a key may use the API. */
const isAccepted = (record: KeyRecord, now: number): boolean => Result.isSuccess(authorize(record, now))

/** Returns `undefined` for a key without a workspace, because the change feed reports changes by workspace. */
const toCacheable = (record: KeyRecord): Cacheable<KeyRecord> | undefined =>
  record.workspace === null ? undefined : { workspace: record.workspace.id, value: record, size: 1 }

const makeCachingKeyStore = Effect.gen(function* () {
  const store = yield* KeyStore
  const feed = yield* ChangeFeed
  const outage = yield* Outage
  const cache = new RevisionedCache<KeyRecord>(feed, limits, Equal.equals, "keys")

  /** Deletes all cached keys of a workspace if one of the keys is rejected while the change feed is down. */
  const forgetIfRejected = (found: KeyRecord): Effect.Effect<void> =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      if (found.workspace !== null && !checkIsUp(feed) && !isAccepted(found, now))
        cache.invalidate(found.workspace.id)
    })

  return Context.make(
    KeyStore,
    KeyStore.of({
      find: cache.through((hash) => {
        const found = Effect.tap(
          cache.load(hash, store.find(hash), toCacheable, ({ _tag }) => _tag === "InvalidKey"),
          forgetIfRejected
        )
        const known = cache.findLastKnown(hash)
        if (known === undefined) return found
        return Effect.flatMap(Clock.currentTimeMillis, (now) =>
          isAccepted(known, now) ? found : outage.readOrServeKnown(found, Effect.succeed(known))
        )
      }),
      markUsed: store.markUsed
    })
  ).pipe(
    Context.add(AcceptedKeys, {
      has: (hash, now) => {
        const record = cache.findLastKnown(hash)
        return record !== undefined && isAccepted(record, now)
      }
    })
  )
})

/**
 * Caches the keys of another KeyStore. Unknown keys and keys without a workspace are not cached, so a flood of unknown
 * keys evicts nothing.
 *
 * During an outage, a key that was rejected at the last contact with the database is still rejected.
 */
export const layer: Layer.Layer<KeyStore | AcceptedKeys, never, KeyStore | ChangeFeed | Outage> =
  Layer.effectContext(makeCachingKeyStore)
