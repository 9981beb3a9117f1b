import { setTimeout } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterEach, vi } from "vitest"
import type { AdmittedCaller } from "../../../../../src/application/access/Admission.ts"
import { makeOutage, Outage, offLayer } from "../../../../../src/application/freshness/Outage.ts"
import {
  encodeWithEtag,
  representResource
} from "../../../../../src/adapters/inbound/http/response/Representation.ts"
import { ResponseCache } from "../../../../../src/adapters/inbound/http/response/ResponseCache.ts"
import type { ApiKeyId, KeyHash } from "../../../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { newId } from "../../../../support/archives.ts"
import { switchedFeed } from "../../../../support/database/switchedFeed.ts"

const caller: AdmittedCaller = {
  keyId: newId<ApiKeyId>(),
  keyHash: "a".repeat(64) as KeyHash,
  keyExpiresAt: null,
  workspaceId: newId<WorkspaceId>(),
  tier: "solo"
}

/** Makes a response cache. If `serves` is true, `findLastKnown` can return responses in an outage. */
const setUp = (serves: boolean) => {
  const feed = switchedFeed()
  const outage = serves
    ? makeOutage({ feed, maxAgeMs: 600_000 }).outage
    : Effect.runSync(Effect.provide(Effect.service(Outage), offLayer))
  const cache = new ResponseCache(feed, outage)
  const store = (key: string, kibibytes = 1) =>
    Effect.runSync(
      cache.load(
        key,
        Effect.sync(() => ({
          caller,
          route: "/",
          representation: representResource(encodeWithEtag("x".repeat(kibibytes * 1024)), caller.workspaceId)
        }))
      )
    )
  return { feed, outage, cache, store }
}

describe("ResponseCache", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it("ResponseCache.get returns no response that is older than 30 s, but findLastKnown still returns the response in an outage unless the outage service is off", async () => {
    const now = vi.spyOn(performance, "now")
    const start = performance.now()
    for (const serves of [true, false]) {
      now.mockReturnValue(start)
      const { cache, feed, store } = setUp(serves)
      store("a")
      assert.isDefined(cache.get("a"))
      now.mockReturnValue(start + 30_002)
      // `lru-cache` reads the clock at most once per millisecond.
      await setTimeout(10)
      assert.isUndefined(cache.get("a"))
      assert.isUndefined(cache.get("a"))
      feed.isUp = false
      assert.isUndefined(cache.get("a"))
      assert.strictEqual(cache.findLastKnown("a") !== undefined, serves)
    }
  })

  it("findLastKnown returns no response from before a change of the workspace, and no response that was read while the feed was down", () => {
    const { cache, feed, store } = setUp(true)
    store("a")
    feed.changes.invalidate(caller.workspaceId)
    feed.isUp = false
    assert.isUndefined(cache.findLastKnown("a"))
    store("b")
    assert.isUndefined(cache.findLastKnown("b"))
  })

  describe("a response that differs from a known response of the same workspace revision", () => {
    const represent = (text: string, promptVersion?: number) => ({
      caller,
      route: "/",
      representation: representResource({ ...encodeWithEtag(text), promptVersion }, caller.workspaceId)
    })
    const older = represent("x", 1)

    for (const [difference, newer] of [
      ["body", represent("y", 1)],
      ["version of the prompt", represent("x", 2)],
      ["size, too large for the cache", represent("x".repeat(2 ** 20 + 1), 1)]
    ] as const) {
      it(`a response that differs from a known response makes ResponseCache delete all responses of the workspace: another ${difference}`, () => {
        for (const isDown of [false, true]) {
          const { cache, feed } = setUp(true)
          for (const key of ["a", "b"]) Effect.runSync(cache.load(key, Effect.succeed(older)))
          const readOverlapping = Effect.sync(() => {
            feed.isUp = !isDown
            Effect.runSync(cache.load("a", Effect.succeed(newer)))
            return older
          })
          Effect.runSync(cache.load("c", readOverlapping))
          feed.isUp = false
          for (const key of ["a", "b", "c"]) assert.isUndefined(cache.findLastKnown(key))
        }
      })
    }

    it("the rejection of a key deletes the known responses of the key, and the rejection of a workspace deletes the known responses of the workspace", () => {
      const { cache, feed, outage } = setUp(true)
      const other = { ...caller, keyHash: "b".repeat(64) as KeyHash }
      Effect.runSync(cache.load("a", Effect.succeed(older)))
      Effect.runSync(cache.load("b", Effect.succeed({ ...older, caller: other })))
      feed.isUp = false
      const known = () => ["a", "b"].filter((key) => cache.findLastKnown(key) !== undefined)
      outage.invalidate("c".repeat(64) as KeyHash)
      assert.deepStrictEqual(known(), ["a", "b"])
      outage.invalidate(caller.keyHash)
      assert.deepStrictEqual(known(), ["b"])
      outage.invalidate(caller.workspaceId)
      assert.deepStrictEqual(known(), [])
    })

    it("a response that equals the known response, or that was read before a change, deletes no known response", () => {
      const { cache, feed } = setUp(true)
      for (const _ of [1, 2]) Effect.runSync(cache.load("a", Effect.succeed(older)))
      Effect.runSync(
        cache.load(
          "a",
          Effect.sync(() => {
            feed.changes.invalidate(caller.workspaceId)
            Effect.runSync(cache.load("a", Effect.succeed(represent("y", 2))))
            return older
          })
        )
      )
      feed.isUp = false
      assert.strictEqual(
        cache.findLastKnown("a")?.value.representation.etag,
        represent("y").representation.etag
      )
    })
  })

  it("ResponseCache contains at most 32 MiB, and evicts the least recently used responses first", () => {
    const { cache, feed, store } = setUp(true)
    store("hot")
    for (let i = 0; i < 1_000; i++) {
      store(`cold ${i}`, 100)
      assert.isDefined(cache.get("hot"))
    }
    feed.isUp = false
    assert.isDefined(cache.findLastKnown("hot"))
    assert.isDefined(cache.findLastKnown("cold 999"))
    const known = Array.from({ length: 1_000 }, (_, i) => cache.findLastKnown(`cold ${i}`)).filter(
      (entry) => entry !== undefined
    )
    assert.isBelow(known.length * 100, 32 * 1024)
    assert.isAbove(known.length * 100, 31 * 1024)
  })
})
