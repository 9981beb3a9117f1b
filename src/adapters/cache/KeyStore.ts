import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LRUCache } from "lru-cache"
import { ChangeFeed } from "../../application/ChangeFeed.ts"
import { KeyStore } from "../../application/KeyStore.ts"
import { cacheLookups } from "../../application/Metrics.ts"
import type { Unavailable } from "../../application/Unavailable.ts"
import type { InvalidKey, KeyHash, KeyRecord } from "../../domain/ApiKey.ts"

/** How many keys are remembered, and for how long at most, in milliseconds (DESIGN.md section 7). */
const maxKeys = 10_000
const maxAge = 10_000

const lookups = cacheLookups("keys")

type Found = Deferred.Deferred<KeyRecord, InvalidKey | Unavailable>

/**
 * Remembers the keys of another KeyStore while nothing of their workspace changes. Only found keys with a workspace
 * are remembered, so strangers can't push tenants out. Who asks for a key that is being looked up waits for that
 * look-up, which goes on for the others when one of them is interrupted.
 */
export const layer: Layer.Layer<KeyStore, never, KeyStore | ChangeFeed> = Layer.effect(
  KeyStore,
  Effect.gen(function* () {
    const store = yield* KeyStore
    const feed = yield* ChangeFeed
    const remembered = new LRUCache<KeyHash, { readonly record: KeyRecord; readonly lastChange: number }>({
      max: maxKeys,
      ttl: maxAge
    })
    const underWay = new Map<KeyHash, Found>()

    const remember = (hash: KeyHash, record: KeyRecord, began: number | undefined): void => {
      if (record.workspace === null || began === undefined) return
      const lastChange = feed.lastChange(record.workspace.id)
      if (lastChange !== undefined && lastChange <= began) remembered.set(hash, { record, lastChange })
    }

    const lookUp = (hash: KeyHash) =>
      Effect.suspend(() => {
        const others = underWay.get(hash)
        if (others !== undefined) return Deferred.await(others)
        const found: Found = Deferred.makeUnsafe()
        underWay.set(hash, found)
        const began = feed.now()
        return store.find(hash).pipe(
          Effect.tap((record) => Effect.sync(() => remember(hash, record, began))),
          Effect.onExit((exit) =>
            Effect.suspend(() => {
              underWay.delete(hash)
              return Deferred.done(found, exit)
            })
          ),
          Effect.forkDetach({ startImmediately: true }),
          Effect.andThen(Deferred.await(found))
        )
      })

    return KeyStore.of({
      find: (hash) => {
        const entry = remembered.get(hash)
        if (entry === undefined) {
          lookups.miss()
          return lookUp(hash)
        }
        if (feed.lastChange(entry.record.workspace!.id) !== entry.lastChange) {
          lookups.drop()
          return lookUp(hash)
        }
        lookups.hit()
        return Effect.succeed(entry.record)
      },
      markUsed: store.markUsed
    })
  })
)
