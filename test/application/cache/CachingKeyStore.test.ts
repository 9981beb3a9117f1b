import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { afterEach, vi } from "vitest"
import { layer } from "../../../src/application/cache/CachingKeyStore.ts"
import { AcceptedKeys, Outage } from "../../../src/application/cache/Outage.ts"
import { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import { type ApiKeyId, InvalidKey, type KeyHash, type KeyRecord } from "../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { SwitchedFeed } from "../../support/database/switchedFeed.ts"
import { makeTest } from "../../support/makeTest.ts"
import { watchOwnMetrics } from "../../support/services/metrics.ts"

const test = makeTest(it.effect)

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

const free: KeyRecord = { ...active, workspace: { ...workspace, tier: "free" } }
const pastDue: KeyRecord = { ...active, workspace: { ...workspace, billing_status: "past_due" } }
const mustReset: KeyRecord = { ...active, owner_must_reset: true }

/** Makes a cache of a store with these keys. The index of a key determines its hash. */
const makeCache = Effect.fnUntraced(function* (...stored: ReadonlyArray<KeyRecord>) {
  const records = new Map(stored.map((record, n) => [toHash(n), record]))
  const state = { lookups: 0, unknown: Effect.fail(InvalidKey) as Lookup }
  const feed = new SwitchedFeed()
  const store = Layer.succeed(KeyStore, {
    find: (hash) =>
      Effect.suspend(() => {
        state.lookups++
        const record = records.get(hash)
        return record === undefined ? state.unknown : Effect.succeed(record)
      }),
    markUsed: () => {}
  })
  const context = yield* Layer.build(
    layer.pipe(Layer.provide([store, feed.layer, Outage.layer(60_000).pipe(Layer.provide(feed.layer))]))
  )
  const { find } = Context.get(context, KeyStore)
  return {
    records,
    state,
    feed,
    /** Returns the record of a key, or the error of the lookup. */
    find: (n: number) => Effect.map(Effect.result(find(toHash(n))), Result.merge),
    accepts: (n: number) => Context.get(context, AcceptedKeys).has(toHash(n), 0)
  }
})

afterEach(() => {
  vi.restoreAllMocks()
})

test("CachingKeyStore looks up a key only once until something in the key's workspace changes", function* () {
  const { records, state, feed, find } = yield* makeCache(active)
  const countLookups = watchOwnMetrics(
    ...["hit", "miss", "drop"].map(
      (result) => `prompt_retrieval_cache_lookups_total{cache="keys",result="${result}"}`
    )
  )
  assert.deepStrictEqual([yield* find(0), yield* find(0)], [active, active])
  records.set(toHash(0), revoked)
  feed.invalidate(newId())
  assert.deepStrictEqual(yield* find(0), active)
  assert.strictEqual(state.lookups, 1)
  feed.invalidate(workspace.id)
  assert.deepStrictEqual([yield* find(0), yield* find(0)], [revoked, revoked])
  assert.strictEqual(state.lookups, 2)
  assert.deepStrictEqual(countLookups(), [3, 1, 1])
})

test("CachingKeyStore looks up a cached key again after 60 s, even if no change is reported", function* () {
  const now = vi.spyOn(performance, "now").mockReturnValue(1_000)
  const { records, find } = yield* makeCache(active)
  yield* find(0)
  records.set(toHash(0), revoked)
  now.mockReturnValue(61_000)
  assert.deepStrictEqual(yield* find(0), active)
  now.mockReturnValue(61_001)
  assert.deepStrictEqual(yield* find(0), revoked)
})

test("CachingKeyStore caches neither unknown keys nor keys without a workspace", function* () {
  const { state, find } = yield* makeCache(legacy)
  for (const _ of [1, 2]) assert.deepStrictEqual([yield* find(0), yield* find(1)], [legacy, InvalidKey])
  assert.strictEqual(state.lookups, 4)
})

test("a flood of unknown keys neither evicts a cached key nor delays a lookup of the key", function* () {
  const { state, find } = yield* makeCache(active)
  yield* find(0)
  state.unknown = Effect.never
  const flood = yield* Effect.forEach(
    Array.from({ length: 20_000 }, (_, n) => n + 1),
    (n) => Effect.forkChild(find(n), { startImmediately: true })
  )
  // The other lookups never finish, so this lookup cannot have waited for them.
  assert.deepStrictEqual(yield* find(0), active)
  assert.strictEqual(state.lookups, 1 + flood.length)
  yield* Fiber.interruptAll(flood)
})

test("in an outage, CachingKeyStore accepts a key only if the last lookup accepted the key and the key's workspace has not changed since", function* () {
  const { feed, find, accepts } = yield* makeCache(active, revoked, free, pastDue, mustReset, legacy)
  const keys = [0, 1, 2, 3, 4, 5, 6]
  for (const n of keys) yield* find(n)
  feed.isUp = false
  assert.deepStrictEqual(keys.filter(accepts), [0])
  feed.invalidate(workspace.id)
  assert.isFalse(accepts(0))
})

it.effect.each([
  ["the key was deleted", 0, undefined],
  ["the workspace is past due", 2, pastDue]
] as const)(
  "in an outage, CachingKeyStore accepts no key of a workspace after a lookup of one of its keys has found that %s",
  ([, key, found]) =>
    Effect.gen(function* () {
      const { records, feed, find, accepts } = yield* makeCache(active, active)
      for (const n of [0, 1]) yield* find(n)
      feed.isUp = false
      yield* find(0)
      assert.deepStrictEqual([0, 1].filter(accepts), [0, 1])
      if (found === undefined) records.delete(toHash(key))
      else records.set(toHash(key), found)
      yield* find(key)
      assert.deepStrictEqual([0, 1].filter(accepts), [])
    })
)

test("in an outage, CachingKeyStore returns the known record of a rejected key, and fails for an accepted key", function* () {
  const { records, state, feed, find } = yield* makeCache(revoked, active)
  for (const n of [0, 1]) yield* find(n)
  feed.isUp = false
  records.clear()
  state.unknown = Effect.fail(Unavailable)
  assert.deepStrictEqual([yield* find(0), yield* find(1)], [revoked, Unavailable])
})
