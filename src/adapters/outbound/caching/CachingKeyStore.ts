import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LRUCache } from "lru-cache"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { cacheLookups } from "../../../application/Metrics.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { InvalidKey, KeyHash, KeyRecord } from "../../../domain/ApiKey.ts"
import { makeSingleFlight } from "./SingleFlight.ts"

/** How many keys are remembered, and for how long at most, in milliseconds (DESIGN.md section 7). */
const maxKeys = 10_000
const maxAge = 10_000

const lookups = cacheLookups("keys")

/**
 * Remembers the keys of another KeyStore while nothing of their workspace changes. Only found keys with a workspace
 * are remembered, so strangers can't push tenants out. Look-ups of the same key at the same time are one, unless
 * anything changed meanwhile: which workspace's key it is, only the look-up tells.
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
    const share = makeSingleFlight<KeyRecord, InvalidKey | Unavailable>()

    const remember = (hash: KeyHash, record: KeyRecord, began: number | undefined): void => {
      if (record.workspace === null || began === undefined) return
      const lastChange = feed.revisionOf(record.workspace.id)
      if (lastChange !== undefined && lastChange <= began) remembered.set(hash, { record, lastChange })
    }

    const lookUp = (hash: KeyHash) =>
      Effect.suspend(() => {
        const began = feed.revision()
        const found = Effect.tap(store.find(hash), (record) =>
          Effect.sync(() => remember(hash, record, began))
        )
        return share(hash, began, found)
      })

    return KeyStore.of({
      find: (hash) => {
        const entry = remembered.get(hash)
        if (entry === undefined) {
          lookups.miss()
          return lookUp(hash)
        }
        if (feed.revisionOf(entry.record.workspace!.id) !== entry.lastChange) {
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
