import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { layer } from "../../../../src/adapters/outbound/caching/CachingKeyStore.ts"
import * as Outage from "../../../../src/application/freshness/Outage.ts"
import { WorkspaceRevisions } from "../../../../src/application/freshness/WorkspaceRevisions.ts"
import { KeyStore } from "../../../../src/application/ports/KeyStore.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"
import { type ApiKeyId, InvalidKey, type KeyHash, type KeyRecord } from "../../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../../src/domain/WorkspaceId.ts"
import { newId } from "../../../support/archives.ts"
import { watchOwnMetrics } from "../../../support/services/metrics.ts"
import { switchedFeed } from "../../../support/database/switchedFeed.ts"

type Lookup = Effect.Effect<KeyRecord, InvalidKey | Unavailable>

const toHash = (n: number) => n.toString(16).padStart(64, "0") as KeyHash
const workspace = { id: newId<WorkspaceId>(), tier: "solo", billing_status: "active" } as const
const active: KeyRecord = {
  id: newId<ApiKeyId>(),
  revoked: false,
  expires_at: null,
  owner_must_reset: false,
  workspace
}
const revoked: KeyRecord = { ...active, revoked: true }
const legacy: KeyRecord = { ...active, workspace: null }

/** Caches a store whose lookups a test provides: `lookUp` gets the hash and the number of the lookup, from 1. */
const makeCache = Effect.fnUntraced(function* (lookUp: (hash: KeyHash, n: number) => Lookup) {
  const changes = new WorkspaceRevisions()
  const feed = switchedFeed(changes)
  const lookups: Array<KeyHash> = []
  const store = Layer.succeed(KeyStore, {
    find: (hash) => Effect.suspend(() => lookUp(hash, lookups.push(hash))),
    markUsed: () => {}
  })
  const context = yield* Layer.build(layer.pipe(Layer.provide([store, feed.layer, Outage.offLayer])))
  return { lookups, changes, feed, find: Context.get(context, KeyStore).find }
})

/** Forks an effect and runs the fiber until the fiber waits. */
const start = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("CachingKeyStore", () => {
  it.effect("CachingKeyStore looks up a key only once until something in the key's workspace changes", () =>
    Effect.gen(function* () {
      const { lookups, changes, find } = yield* makeCache((_, n) =>
        Effect.succeed(n === 1 ? active : revoked)
      )
      const countLookups = watchOwnMetrics(
        'prompt_retrieval_cache_lookups_total{cache="keys",result="hit"}',
        'prompt_retrieval_cache_lookups_total{cache="keys",result="miss"}',
        'prompt_retrieval_cache_lookups_total{cache="keys",result="drop"}'
      )
      assert.deepStrictEqual([yield* find(toHash(1)), yield* find(toHash(1))], [active, active])
      changes.invalidate(newId())
      assert.deepStrictEqual(yield* find(toHash(1)), active)
      assert.strictEqual(lookups.length, 1)
      changes.invalidate(workspace.id)
      assert.deepStrictEqual([yield* find(toHash(1)), yield* find(toHash(1))], [revoked, revoked])
      assert.strictEqual(lookups.length, 2)
      assert.deepStrictEqual(countLookups(), [3, 1, 1])
    })
  )

  it.effect("CachingKeyStore caches neither unknown keys nor keys without a workspace", () =>
    Effect.gen(function* () {
      const { lookups, find } = yield* makeCache((hash) =>
        hash === toHash(1) ? Effect.succeed(legacy) : Effect.fail(InvalidKey)
      )
      for (const _ of [1, 2]) {
        assert.deepStrictEqual(yield* find(toHash(1)), legacy)
        assert.deepStrictEqual(yield* Effect.flip(find(toHash(2))), InvalidKey)
      }
      assert.strictEqual(lookups.length, 4)
    })
  )

  it.effect(
    "concurrent lookups of a key share one query, but a lookup that starts after a change never joins an earlier query",
    () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<KeyRecord>()
        const { changes, find, lookups } = yield* makeCache((_, n) =>
          n === 1 ? Deferred.await(gate) : Effect.succeed(revoked)
        )
        const before = [yield* start(find(toHash(1))), yield* start(find(toHash(1)))]
        assert.strictEqual(lookups.length, 1)
        changes.invalidate(workspace.id)
        const after = yield* start(find(toHash(1)))
        yield* Deferred.succeed(gate, active)
        assert.deepStrictEqual(yield* Fiber.joinAll(before), [active, active])
        assert.deepStrictEqual([yield* Fiber.join(after), yield* find(toHash(1))], [revoked, revoked])
      })
  )

  it.effect("a flood of unknown keys neither evicts a cached key nor delays a lookup of the key", () =>
    Effect.gen(function* () {
      const { lookups, find } = yield* makeCache((hash) =>
        hash === toHash(0) ? Effect.succeed(active) : Effect.never
      )
      yield* find(toHash(0))
      const flood = yield* Effect.forEach(
        Array.from({ length: 20_000 }, (_, n) => n + 1),
        (n) => start(Effect.result(find(toHash(n))))
      )
      // The other lookups never finish, so this lookup cannot have waited for them.
      assert.deepStrictEqual(yield* Effect.result(find(toHash(0))), Result.succeed(active))
      assert.strictEqual(lookups.filter((hash) => hash === toHash(0)).length, 1)
      yield* Fiber.interruptAll(flood)
    })
  )
})

describe("CachingKeyStore in an outage of the database", () => {
  const free: KeyRecord = { ...active, workspace: { ...workspace, tier: "free" } }
  const pastDue: KeyRecord = { ...active, workspace: { ...workspace, billing_status: "past_due" } }

  /** Makes a cache over a store that returns `records` until the test makes the store unavailable. */
  const makeOutageCache = Effect.fnUntraced(function* (records: Array<KeyRecord>) {
    const feed = switchedFeed()
    const state = { isUp: true }
    const store = Layer.succeed(KeyStore, {
      find: (hash) =>
        Effect.suspend(() =>
          state.isUp ? Effect.succeed(records[Number(hash)]!) : Effect.fail(Unavailable)
        ),
      markUsed: () => {}
    })
    const context = yield* Layer.build(
      layer.pipe(Layer.provide([store, feed.layer, Outage.layer(60_000).pipe(Layer.provide(feed.layer))]))
    )
    return {
      feed,
      store: state,
      find: (n: number) => Effect.result(Context.get(context, KeyStore).find(toHash(n)))
    }
  })

  it.effect(
    "in an outage, CachingKeyStore returns the record of a key that was rejected before the outage if the key has a workspace, and no record of an admitted key",
    () =>
      Effect.gen(function* () {
        const records = [active, revoked, free, pastDue, { ...active, owner_must_reset: true }, legacy]
        const { feed, store, find } = yield* makeOutageCache(records)
        for (const n of records.keys()) yield* find(n)
        feed.isUp = false
        store.isUp = false
        const unavailable = Result.fail(Unavailable)
        const found = yield* Effect.forEach([...records.keys()], find)
        assert.deepStrictEqual(found, [
          unavailable,
          ...records.slice(1, 5).map((record) => Result.succeed(record)),
          unavailable
        ])
      })
  )

  it.effect(
    "CachingKeyStore forgets a rejection after a change of the workspace, or after a lookup finds that the key is valid",
    () =>
      Effect.gen(function* () {
        const records = [revoked, free]
        const { feed, store, find } = yield* makeOutageCache(records)
        for (const n of [0, 1]) yield* find(n)
        feed.isUp = false
        store.isUp = true
        records[1] = active
        assert.deepStrictEqual(yield* find(1), Result.succeed(active))
        store.isUp = false
        assert.deepStrictEqual(yield* find(0), Result.succeed(revoked))
        assert.deepStrictEqual(yield* find(1), Result.fail(Unavailable))
        feed.changes.invalidate(workspace.id)
        assert.deepStrictEqual(yield* find(0), Result.fail(Unavailable))
      })
  )
})
