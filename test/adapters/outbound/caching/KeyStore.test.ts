import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { layer } from "../../../../src/adapters/outbound/caching/CachingKeyStore.ts"
import { WorkspaceRevisions } from "../../../../src/application/ports/ChangeFeed.ts"
import { KeyStore } from "../../../../src/application/ports/KeyStore.ts"
import type { Unavailable } from "../../../../src/application/ports/Unavailable.ts"
import { type ApiKeyId, InvalidKey, type KeyHash, type KeyRecord } from "../../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../../src/domain/Prompt.ts"
import { newId } from "../../../support/archives.ts"
import { switchedFeed } from "./switchedFeed.ts"

type Answer = Effect.Effect<KeyRecord, InvalidKey | Unavailable>

const hashOf = (n: number) => n.toString(16).padStart(64, "0") as KeyHash
const workspace = { id: newId<WorkspaceId>(), tier: "solo", billing_status: "active" } as const
const active: KeyRecord = { id: newId<ApiKeyId>(), revoked: false, owner_must_reset: false, workspace }
const revoked: KeyRecord = { ...active, revoked: true }
const legacy: KeyRecord = { ...active, workspace: null }

/** A store whose answers a test decides on, look-up by look-up, behind the cache. */
const setUp = Effect.fnUntraced(function* (answer: (hash: KeyHash, lookUp: number) => Answer) {
  const changes = new WorkspaceRevisions()
  const feed = switchedFeed(changes)
  const asked: Array<KeyHash> = []
  const store = Layer.succeed(KeyStore, {
    find: (hash) => Effect.suspend(() => answer(hash, asked.push(hash))),
    markUsed: () => {}
  })
  const context = yield* Layer.build(layer.pipe(Layer.provide([store, feed.layer])))
  return { asked, changes, feed, find: Context.get(context, KeyStore).find }
})

/** Runs until it waits for something. */
const begin = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("the cache of keys", () => {
  it.effect("asks once, until something of the key's workspace changes", () =>
    Effect.gen(function* () {
      const { asked, changes, find } = yield* setUp((_, n) => Effect.succeed(n === 1 ? active : revoked))
      assert.deepStrictEqual([yield* find(hashOf(1)), yield* find(hashOf(1))], [active, active])
      changes.invalidate(newId())
      assert.deepStrictEqual(yield* find(hashOf(1)), active)
      assert.strictEqual(asked.length, 1)
      changes.invalidate(workspace.id)
      assert.deepStrictEqual([yield* find(hashOf(1)), yield* find(hashOf(1))], [revoked, revoked])
      assert.strictEqual(asked.length, 2)
    })
  )

  it.effect("keeps nothing that is unknown or without a workspace", () =>
    Effect.gen(function* () {
      const { asked, find } = yield* setUp((hash) =>
        hash === hashOf(1) ? Effect.succeed(legacy) : Effect.fail(InvalidKey)
      )
      for (const _ of [1, 2]) {
        assert.deepStrictEqual(yield* find(hashOf(1)), legacy)
        assert.deepStrictEqual(yield* Effect.flip(find(hashOf(2))), InvalidKey)
      }
      assert.strictEqual(asked.length, 4)
    })
  )

  it.effect("serves and stores nothing while the feed is down", () =>
    Effect.gen(function* () {
      const { asked, feed, find } = yield* setUp(() => Effect.succeed(active))
      yield* find(hashOf(1))
      feed.isUp = false
      yield* find(hashOf(1))
      yield* find(hashOf(2))
      feed.isUp = true
      yield* find(hashOf(2))
      assert.deepStrictEqual(asked, [1, 1, 2, 2].map(hashOf))
    })
  )

  it.effect("keeps nothing that was read before a change that came meanwhile", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<KeyRecord>()
      const { asked, changes, find } = yield* setUp((_, n) =>
        n === 1 ? Deferred.await(gate) : Effect.succeed(revoked)
      )
      const slow = yield* begin(find(hashOf(1)))
      changes.invalidate(workspace.id)
      yield* Deferred.succeed(gate, active)
      assert.deepStrictEqual(yield* Fiber.join(slow), active)
      assert.deepStrictEqual(yield* find(hashOf(1)), revoked)
      assert.strictEqual(asked.length, 2)
    })
  )

  it.effect.each([
    ["nobody", undefined, 1],
    ["one who waits", 1, 1],
    ["the one whose look-up it was: another of them looks up", 0, 2]
  ] as const)("looks up once for all who ask at the same time, and %s leaves", ([, leaves, lookUps]) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<KeyRecord>()
      const { asked, find } = yield* setUp(() => Deferred.await(gate))
      const callers = yield* Effect.forEach([0, 1, 2], () => begin(find(hashOf(1))))
      if (leaves !== undefined) yield* Fiber.interrupt(callers[leaves]!)
      yield* Deferred.succeed(gate, active)
      const stay = callers.filter((_, index) => index !== leaves)
      assert.deepStrictEqual(
        yield* Fiber.joinAll(stay),
        stay.map(() => active)
      )
      assert.strictEqual(asked.length, lookUps)
    })
  )

  it.effect("who asks after a change does not get what was asked before it", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<KeyRecord>()
      const { changes, find } = yield* setUp((_, n) =>
        n === 1 ? Deferred.await(gate) : Effect.succeed(revoked)
      )
      const before = yield* begin(find(hashOf(1)))
      changes.invalidate(workspace.id)
      const after = yield* begin(find(hashOf(1)))
      yield* Deferred.succeed(gate, active)
      assert.deepStrictEqual([yield* Fiber.join(before), yield* Fiber.join(after)], [active, revoked])
      assert.deepStrictEqual(yield* find(hashOf(1)), revoked)
    })
  )

  it.effect("while the feed is down, nobody gets what another asked for", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<KeyRecord>()
      const { feed, find } = yield* setUp((_, n) =>
        n === 1 ? Deferred.await(gate) : Effect.succeed(revoked)
      )
      feed.isUp = false
      const before = yield* begin(find(hashOf(1)))
      const after = yield* begin(find(hashOf(1)))
      yield* Deferred.succeed(gate, active)
      assert.deepStrictEqual([yield* Fiber.join(before), yield* Fiber.join(after)], [active, revoked])
    })
  )

  it.effect("a flood of unknown keys neither displaces a good one nor holds it up", () =>
    Effect.gen(function* () {
      const { asked, find } = yield* setUp((hash) =>
        hash === hashOf(0) ? Effect.succeed(active) : Effect.never
      )
      yield* find(hashOf(0))
      const flood = yield* Effect.forEach(
        Array.from({ length: 20_000 }, (_, n) => n + 1),
        (n) => begin(Effect.result(find(hashOf(n))))
      )
      // Answered without waiting: nothing of the flood ever is.
      assert.deepStrictEqual(yield* Effect.result(find(hashOf(0))), Result.succeed(active))
      assert.strictEqual(asked.filter((hash) => hash === hashOf(0)).length, 1)
      yield* Fiber.interruptAll(flood)
    })
  )
})
