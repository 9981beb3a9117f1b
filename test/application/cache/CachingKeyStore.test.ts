import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { vi } from "vitest"
import { KnownKeys, layer } from "../../../src/application/cache/CachingKeyStore.ts"
import * as Outage from "../../../src/application/cache/Outage.ts"
import { WorkspaceRevisions } from "../../../src/application/cache/FeedState.ts"
import { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import { type ApiKeyId, InvalidKey, type KeyHash, type KeyRecord } from "../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { watchOwnMetrics } from "../../support/services/metrics.ts"
import { switchedFeed } from "../../support/database/switchedFeed.ts"

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
  const context = yield* Layer.build(
    layer.pipe(Layer.provide([store, feed.layer, Outage.layer(60_000).pipe(Layer.provide(feed.layer))]))
  )
  return {
    lookups,
    changes,
    feed,
    find: Context.get(context, KeyStore).find,
    accepts: (hash: KeyHash) => Context.get(context, KnownKeys).accepts(hash, 0)
  }
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

describe("KnownKeys", () => {
  const free: KeyRecord = { ...active, workspace: { ...workspace, tier: "free" } }
  const pastDue: KeyRecord = { ...active, workspace: { ...workspace, billing_status: "past_due" } }
  const mustReset: KeyRecord = { ...active, owner_must_reset: true }

  /** Makes a cache over a store that returns the record of each key from `records`, or fails if there is none. */
  const makeRecordCache = Effect.fnUntraced(function* (records: Map<KeyHash, KeyRecord>) {
    const cache = yield* makeCache((hash) => {
      const record = records.get(hash)
      return record === undefined ? Effect.fail(InvalidKey) : Effect.succeed(record)
    })
    return { ...cache, look: (hash: KeyHash) => Effect.ignore(cache.find(hash)) }
  })

  it.effect(
    "in an outage, a key is accepted if it was accepted at its last lookup and nothing changed since",
    () =>
      Effect.gen(function* () {
        const records = [active, revoked, free, pastDue, mustReset, legacy]
        const cache = yield* makeRecordCache(new Map(records.map((record, n) => [toHash(n), record])))
        for (const n of records.keys()) yield* cache.look(toHash(n))
        cache.feed.isUp = false
        assert.deepStrictEqual(
          [...records.keys(), records.length].map((n) => cache.accepts(toHash(n))),
          [true, false, false, false, false, false, false]
        )
        cache.changes.invalidate(workspace.id)
        assert.isFalse(cache.accepts(toHash(0)))
      })
  )

  it.effect.each([
    ["the key was revoked", 0, revoked],
    ["the key was deleted", 0, undefined],
    ["the owner must reset the password", 0, mustReset],
    ["the workspace is past due, with a key that was never used before", 2, pastDue],
    ["the workspace is on the Free tier, with a key that was never used before", 2, free]
  ] as const)(
    "in an outage, no key of a workspace is accepted after a lookup finds that %s",
    ([, key, found]) =>
      Effect.gen(function* () {
        const records = new Map([0, 1].map((n) => [toHash(n), active]))
        const cache = yield* makeRecordCache(records)
        for (const n of [0, 1]) yield* cache.look(toHash(n))
        cache.feed.isUp = false
        yield* cache.look(toHash(0))
        assert.isTrue(cache.accepts(toHash(0)))
        if (found === undefined) records.delete(toHash(key))
        else records.set(toHash(key), found)
        yield* cache.look(toHash(key))
        assert.deepStrictEqual(
          [0, 1].map((n) => cache.accepts(toHash(n))),
          [false, false]
        )
      })
  )

  it.effect(
    "in an outage, find returns the known record of a rejected key, and fails for an accepted key",
    () =>
      Effect.gen(function* () {
        const records = new Map([revoked, active].map((record, n) => [toHash(n), record]))
        const state = { isUp: true }
        const cache = yield* makeCache((hash) =>
          state.isUp ? Effect.succeed(records.get(hash)!) : Effect.fail(Unavailable)
        )
        for (const n of [0, 1]) yield* cache.find(toHash(n))
        cache.feed.isUp = false
        state.isUp = false
        assert.deepStrictEqual(yield* cache.find(toHash(0)), revoked)
        assert.deepStrictEqual(yield* Effect.flip(cache.find(toHash(1))), Unavailable)
      })
  )

  it.effect("a cached key is looked up again after 60 s, even if no change is reported", () =>
    Effect.gen(function* () {
      const now = vi.spyOn(performance, "now").mockReturnValue(1_000)
      const { lookups, find } = yield* makeCache((_, n) => Effect.succeed(n === 1 ? active : revoked))
      yield* find(toHash(1))
      now.mockReturnValue(61_000)
      assert.deepStrictEqual(yield* find(toHash(1)), active)
      now.mockReturnValue(61_001)
      assert.deepStrictEqual(yield* find(toHash(1)), revoked)
      assert.strictEqual(lookups.length, 2)
    }).pipe(Effect.ensuring(Effect.sync(() => vi.restoreAllMocks())))
  )
})
