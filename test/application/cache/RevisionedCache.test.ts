import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterEach, vi } from "vitest"
import { cacheLimits } from "../../../src/adapters/inbound/http/App.ts"
import { RevisionedCache } from "../../../src/application/cache/RevisionedCache.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { SwitchedFeed } from "../../support/database/switchedFeed.ts"

const [workspace, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]

/** Makes a cache of texts with the limits of the response cache. */
const setUp = () => {
  const feed = new SwitchedFeed()
  const cache = new RevisionedCache<string>(feed, cacheLimits, Object.is)
  const respond = <E>(key: string, read: Effect.Effect<string, E>, from = workspace) =>
    cache.load(
      key,
      read,
      (value) => ({ workspace: from, value, size: value.length + 1024 }),
      (error) => error === "not found"
    )
  const load = (key: string, text: string, from?: WorkspaceId) =>
    Effect.runSync(respond(key, Effect.succeed(text), from))
  const fail = (key: string, error: string) => Effect.runSync(Effect.flip(respond(key, Effect.fail(error))))
  const listKnown = (keys: ReadonlyArray<string>) =>
    keys.filter((key) => cache.findLastKnown(key) !== undefined)
  return { feed, cache, respond, load, fail, listKnown }
}

afterEach(() => {
  vi.restoreAllMocks()
})

it("the cache returns a response for 30 s, even if later reads return the same response or fail, and after 30 s only in an outage", () => {
  const now = vi.spyOn(performance, "now").mockReturnValue(1_000)
  const { cache, feed, load, fail } = setUp()
  load("a", "x")
  now.mockReturnValue(6_000)
  load("a", cache.peek("a")!)
  fail("a", "unavailable")
  now.mockReturnValue(31_000)
  assert.strictEqual(cache.get("a"), "x")
  now.mockReturnValue(31_001)
  assert.isUndefined(cache.get("a"))
  feed.isUp = false
  assert.strictEqual(cache.findLastKnown("a"), "x")
})

/** Results of a read of the key "a" that contradict the known value "x". */
const contradictions: Record<string, (world: ReturnType<typeof setUp>) => unknown> = {
  "another body": ({ load }) => load("a", "y"),
  "another body that is too large for the cache": ({ load }) => load("a", "y".repeat(2 ** 20)),
  "an error about the content": ({ fail }) => fail("a", "not found")
}
it.each(Object.keys(contradictions).flatMap((name) => [[name, true] as const, [name, false] as const]))(
  "a result that contradicts the known response deletes all responses of its workspace, but no other responses: %s, while the feed is up: %s",
  (name, isUp) => {
    const world = setUp()
    const { respond, feed, load, listKnown } = world
    for (const key of ["a", "b"]) load(key, "x")
    load("other", "x", other)
    const readOverlapping = Effect.sync(() => {
      feed.isUp = isUp
      contradictions[name]!(world)
      return "x"
    })
    Effect.runSync(respond("c", readOverlapping))
    feed.isUp = false
    assert.deepStrictEqual(listKnown(["a", "b", "c", "other"]), ["other"])
  }
)

it("a read that started before a reported change deletes a different cached response, because the result of the read may be newer", () => {
  const { cache, feed, respond, load } = setUp()
  const readLate = Effect.sync(() => {
    feed.invalidate(workspace)
    load("a", "x")
    // The database changes again, and the feed has not reported this change.
    return "y"
  })
  Effect.runSync(respond("a", readLate))
  assert.isUndefined(cache.get("a"))
})

it.each([
  { results: "differ", texts: ["newest", "newer", "older"], expected: undefined },
  { results: "are equal", texts: ["x", "x", "x"], expected: "x" }
])(
  "after a change, the cache serves the latest of three overlapping reads only if the results are equal: the results $results",
  ({ texts, expected }) => {
    const { cache, feed, respond } = setUp()
    const finish: Array<(text: string) => void> = []
    const read = Effect.callback<string>((resume) => void finish.push((text) => resume(Effect.succeed(text))))
    // Each read starts before the read before it ends. The first result is discarded, and the second is unconfirmed.
    const start = () => Effect.runFork(respond("a", read))
    start()
    feed.invalidate(workspace)
    start()
    finish[0]!(texts[0]!)
    start()
    finish[1]!(texts[1]!)
    assert.isUndefined(cache.get("a"))
    finish[2]!(texts[2]!)
    assert.strictEqual(cache.get("a"), expected)
  }
)

it("the cache holds at most 32 MiB, and evicts the oldest responses first, a sixteenth of the cache at a time", () => {
  const { load, listKnown } = setUp()
  const keys = Array.from({ length: 1_000 }, (_, i) => `cold ${i}`)
  for (const key of keys) load(key, "x".repeat(100 * 1024))
  const count = listKnown(keys).length
  assert.deepStrictEqual(listKnown(keys), keys.slice(-count))
  assert.isBelow(count * 100, 32 * 1024)
  assert.isAbove(count * 100, 29 * 1024)
})

it("a workspace above its equal share of a full cache evicts only its own responses", () => {
  const { load, listKnown } = setUp()
  const others = Array.from({ length: 3 }, () => newId<WorkspaceId>())
  const small = others.flatMap((other, n) =>
    Array.from({ length: 50 }, (_, i) => [`small ${n} ${i}`, other] as const)
  )
  for (const [key, other] of small) load(key, "x".repeat(100 * 1024), other)
  const large = Array.from({ length: 100 }, (_, i) => `large ${i}`)
  for (const key of large) load(key, "x".repeat(1_000 * 1024))
  assert.strictEqual(listKnown(small.map(([key]) => key)).length, small.length)
  assert.isAbove(listKnown(large).length, 10)
})
