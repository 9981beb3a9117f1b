import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { afterEach, vi } from "vitest"
import { cacheLimits } from "../../../src/application/cache/CacheLimits.ts"
import { RevisionedCache } from "../../../src/application/cache/RevisionedCache.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { switchedFeed } from "../../support/database/switchedFeed.ts"

const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const

/** What happens next. `workspace` and `nth` select what it happens to. */
const Step = Schema.Struct({
  kind: Schema.Literals([
    /** A caller requests the value of the workspace. */
    "request",
    /** An unfinished read takes the current value of the database. The read returns this value when it finishes. */
    "snapshot",
    "finish",
    /** A caller is interrupted. */
    "interrupt",
    /** The database contains a new value. The feed reports it later. */
    "commit",
    "report",
    /** A reader has found a change that the feed has not reported. */
    "invalidate",
    "down",
    "up"
  ]),
  workspace: Schema.Literals([0, 1]),
  nth: Schema.Literals([0, 1, 2, 3, 4, 5])
})
type Step = typeof Step.Type
/** Returns an unfinished request or read: 0 selects the oldest. Numbers that are too large wrap around. */
const pick = <A>(items: ReadonlyArray<A>, nth: number): A | undefined => items[nth % items.length]

/** A database read that the test takes through its stages. */
interface Read {
  readonly workspace: number
  snapshot: number | undefined
  readonly finished: Deferred.Deferred<void>
}

/**
 * Runs random steps against a database whose values are version numbers. Checks every completed request: it returns at
 * least the version that the feed had reported, and that any response had contained, when the request was made.
 */
const checkSteps = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const feed = switchedFeed()
  const cache = new RevisionedCache<number>(feed, { maxSize: 2, maxAgeMs: 30_000 }, Object.is)
  const stored = workspaces.map(() => 0)
  /** The lowest version of each workspace that a request may return. */
  const floors = workspaces.map(() => 0)
  const raiseFloor = (workspace: number, version: number) => {
    floors[workspace] = Math.max(floors[workspace]!, version)
  }
  let reads: Array<Read> = []
  let requests: Array<{
    readonly workspace: number
    readonly fiber: Fiber.Fiber<number>
    readonly floor: number
  }> = []

  const startRead = (workspace: number) =>
    Effect.suspend(() => {
      const read: Read = { workspace, snapshot: undefined, finished: Deferred.makeUnsafe() }
      reads.push(read)
      const remove = Effect.sync(() => {
        reads = reads.filter((other) => other !== read)
      })
      return Deferred.await(read.finished).pipe(
        Effect.map(() => read.snapshot!),
        Effect.ensuring(remove)
      )
    })

  const request = (workspace: number): Effect.Effect<number> => {
    const key = String(workspace)
    const id = workspaces[workspace]!
    const value = cache.get(key)
    if (value !== undefined) return Effect.succeed(value)
    return cache.load(key, startRead(workspace), (value) => ({ workspace: id, value, size: 1 }))
  }

  const checkFinished = (): void => {
    requests = requests.filter(({ workspace, fiber, floor }) => {
      const exit = fiber.pollUnsafe()
      if (exit !== undefined && Exit.isSuccess(exit)) {
        assert.isAtLeast(exit.value, floor)
        raiseFloor(workspace, exit.value)
      }
      return exit === undefined
    })
  }

  const takeSnapshot = (read: Read | undefined): void => {
    if (read !== undefined) read.snapshot ??= stored[read.workspace]!
  }

  const apply = Effect.fnUntraced(function* ({ kind, workspace, nth }: Step) {
    switch (kind) {
      case "request": {
        const floor = floors[workspace]!
        const response = Effect.suspend(() => request(workspace))
        const fiber = yield* Effect.forkChild(response, { startImmediately: true })
        requests.push({ workspace, fiber, floor })
        return
      }
      case "snapshot":
        return takeSnapshot(pick(reads, nth))
      case "finish": {
        const read = pick(reads, nth)
        takeSnapshot(read)
        if (read !== undefined) yield* Deferred.succeed(read.finished, undefined)
        return
      }
      case "interrupt": {
        const leaving = pick(requests, nth)
        if (leaving !== undefined) yield* Fiber.interrupt(leaving.fiber)
        return
      }
      case "commit":
        stored[workspace]!++
        return
      case "report":
        // A feed that is down misses the report.
        if (!feed.isUp) return
        feed.changes.invalidate(workspaces[workspace]!)
        return raiseFloor(workspace, stored[workspace]!)
      case "invalidate":
        return cache.invalidate(workspaces[workspace]!)
      case "down":
        feed.isUp = false
        return
      case "up":
        if (feed.isUp) return
        feed.changes.invalidateAll()
        feed.isUp = true
        for (const [workspace, version] of stored.entries()) raiseFloor(workspace, version)
    }
  })

  const run = Effect.fnUntraced(function* (step: Step) {
    yield* apply(step)
    // Lets every fiber run until it waits.
    for (let turn = 0; turn < 5; turn++) yield* Effect.yieldNow
    checkFinished()
  })

  for (const step of steps) yield* run(step)
  while (reads.length > 0) yield* run({ kind: "finish", workspace: 0, nth: 0 })
  assert.deepStrictEqual(requests, [])
})

describe("RevisionedCache", () => {
  it.effect.prop(
    "no response is older than the last reported change or than a response that was sent before its request",
    { steps: Schema.Array(Step).check(Schema.isMinLength(40), Schema.isMaxLength(60)) },
    Effect.fnUntraced(function* ({ steps }) {
      yield* checkSteps(steps)
    }),
    { arbitrary: { runs: 800 }, timeout: 60_000 }
  )
})

const [workspace, other] = workspaces

/** Makes a cache of texts with the limits of the response cache. */
const setUp = () => {
  const feed = switchedFeed()
  const cache = new RevisionedCache<string>(feed, cacheLimits.responses, Object.is)
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

describe("a RevisionedCache with the limits of responses", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it("a response is served for 30 s, and remains known for outages", () => {
    const now = vi.spyOn(performance, "now").mockReturnValue(1_000)
    const { cache, feed, load } = setUp()
    load("a", "x")
    now.mockReturnValue(31_000)
    assert.strictEqual(cache.get("a"), "x")
    now.mockReturnValue(31_001)
    assert.isUndefined(cache.get("a"))
    feed.isUp = false
    assert.strictEqual(cache.findLastKnown("a"), "x")
  })

  /** Results of a read of the key "a" whose known value is "x". */
  const contradictions: Record<string, (world: ReturnType<typeof setUp>) => unknown> = {
    "another body": ({ load }) => load("a", "y"),
    "another body that is too large for the cache": ({ load }) => load("a", "y".repeat(2 ** 20)),
    "an error about the content": ({ fail }) => fail("a", "not found")
  }
  it.each(Object.keys(contradictions).flatMap((name) => [[name, true] as const, [name, false] as const]))(
    "a result that contradicts the known response deletes all responses of its workspace only: %s, while the feed is up: %s",
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

  it("equal responses and other errors delete no known response", () => {
    const { cache, feed, load, fail } = setUp()
    for (const _ of [1, 2]) load("a", "x")
    fail("a", "unavailable")
    feed.isUp = false
    assert.strictEqual(cache.findLastKnown("a"), "x")
  })

  it("a different result of a read that started before a reported change deletes the cached response, because the result may be newer", () => {
    const { cache, feed, respond, load } = setUp()
    const readLate = Effect.sync(() => {
      feed.changes.invalidate(workspace)
      load("a", "x")
      // The database changes again, and the feed has not reported this change.
      return "y"
    })
    Effect.runSync(respond("a", readLate))
    assert.isUndefined(cache.get("a"))
  })

  it("the cache holds at most 32 MiB, and evicts the oldest responses first, a sixteenth at a time", () => {
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
})
