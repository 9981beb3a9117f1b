import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { makeOutage } from "../../../src/application/cache/Outage.ts"
import { RevisionedCache } from "../../../src/application/cache/RevisionedCache.ts"
import { type Instant } from "../../../src/application/ports/ChangeFeed.ts"
import { WorkspaceRevisions } from "../../../src/application/cache/FeedState.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { readOwnMetric } from "../../support/services/metrics.ts"

const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const
const maxAgeMs = 10_000
const heartbeatTtlMs = 3_000

/** Makes a change feed with clocks that the test sets, and the `Outage` service that uses the feed. */
const setUp = () => {
  let clock: Instant = { monotonic: 1_000, wall: 5_000_000 }
  const revisions = new WorkspaceRevisions()
  const revisionOf = (workspace: WorkspaceId) => revisions.revisionOf(workspace)
  let isConnected = true
  let upUntil: Instant | undefined
  let contactAt: Instant | undefined
  let isFirst = true
  const isUp = () => upUntil !== undefined && clock.monotonic < upUntil.monotonic && clock.wall < upUntil.wall
  const feed = {
    revision: () => (isUp() ? revisions.revision() : undefined),
    revisionOf: (workspace: WorkspaceId) => (isUp() ? revisionOf(workspace) : undefined),
    lastContact: () =>
      contactAt === undefined ? undefined : { at: contactAt, revisionOf, hasPausedSince: () => false },
    onChange: () => {}
  }
  const lines: Array<unknown> = []
  const { outage, report } = makeOutage(feed, maxAgeMs, () => clock)
  const control = {
    /** If the feed is connected, a heartbeat arrives that was sent `delay` ms ago. */
    beat: (delay = 0) => {
      if (!isConnected) return
      if (isFirst) revisions.invalidateAll()
      isFirst = false
      contactAt = { monotonic: clock.monotonic - delay, wall: clock.wall - delay }
      upUntil = {
        monotonic: contactAt.monotonic + heartbeatTtlMs,
        wall: contactAt.wall + heartbeatTtlMs
      }
    },
    /** Cuts the connection of the feed. If `isNoticed` is false, the feed stays up until heartbeats are late. */
    lose: (isNoticed: boolean) => {
      isConnected = false
      if (isNoticed) upUntil = undefined
    },
    reconnect: () => {
      if (isConnected) return
      isConnected = true
      isFirst = true
      upUntil = undefined
    },
    change: (workspace: WorkspaceId) => {
      if (isConnected) revisions.invalidate(workspace)
    },
    run: (ms: number) => {
      clock = { monotonic: clock.monotonic + ms, wall: clock.wall + ms }
    },
    /** Suspends the machine, which stops only the monotonic clock. */
    suspend: (ms: number) => {
      clock = { ...clock, wall: clock.wall + ms }
    },
    setWall: (ms: number) => {
      clock = { ...clock, wall: clock.wall + ms }
    }
  }
  const logged = (effect: Effect.Effect<void>) =>
    Effect.runSync(Effect.provide(effect, Logger.layer([Logger.make(({ message }) => lines.push(message))])))
  return {
    feed,
    outage,
    lines,
    isUp,
    report: () => logged(report),
    record: (ageMs: number) => logged(outage.recordResponse(ageMs)),
    ...control
  }
}

const Workspace = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: workspaces.length - 1 }))
const Milliseconds = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6_000 }))
const Step = Schema.Union([
  Schema.Struct({ step: Schema.Literals(["request", "change"]), workspace: Workspace }),
  Schema.Struct({ step: Schema.Literal("run"), ms: Milliseconds }),
  Schema.Struct({ step: Schema.Literal("beat") }),
  Schema.Struct({
    step: Schema.Literals(["lose", "lose silently", "reconnect", "database down", "database up"])
  }),
  Schema.Struct({ step: Schema.Literal("disturb clock"), ms: Milliseconds })
])

/**
 * Runs random steps with one caller per workspace, and checks each response. No response is older than an earlier
 * response to the same caller. A known response is at least as new as the state at the last heartbeat that arrived, and
 * its age, measured in true time, is at most `maxAgeMs`. While the feed is up, no known response is served. Returns the
 * number of known responses.
 */
const checkSteps = (steps: ReadonlyArray<typeof Step.Type>, disturbance: "suspend" | "set back") => {
  const world = setUp()
  const cache = new RevisionedCache<number>(
    world.feed,
    { maxSize: 2, maxAgeMs: Number.POSITIVE_INFINITY },
    Object.is
  )
  const stored = workspaces.map(() => 0)
  const received = workspaces.map(() => 0)
  /** The version of each workspace when the last heartbeat arrived. */
  let atContact: ReadonlyArray<number> = stored
  let isDatabaseUp = true
  let trueTime = 0
  let contactTime = 0
  let knownResponses = 0

  const receive = (workspace: number, version: number) => {
    assert.isAtLeast(version, received[workspace]!)
    received[workspace] = version
  }

  /** Reads from the database. A result that contradicts the known response makes the cache forget the workspace. */
  const readFresh = (workspace: number) => {
    const key = String(workspace)
    const id = workspaces[workspace]!
    const load = cache.load(key, Effect.succeed(stored[workspace]!), (value) => ({
      workspace: id,
      value,
      size: 1
    }))
    receive(workspace, Effect.runSync(load))
  }

  const request = (workspace: number) => {
    const cached = cache.get(String(workspace))
    if (cached !== undefined) return receive(workspace, cached)
    if (isDatabaseUp) return readFresh(workspace)
    const known = cache.findLastKnown(String(workspace))
    const age = world.outage.findAge()
    if (known === undefined || age === undefined) return
    knownResponses++
    assert.isFalse(world.isUp())
    assert.isAtMost(trueTime - contactTime, maxAgeMs)
    assert.isAtLeast(age, trueTime - contactTime)
    assert.isAtLeast(known, atContact[workspace]!)
    receive(workspace, known)
  }

  const apply = (step: typeof Step.Type) => {
    switch (step.step) {
      case "request":
        return request(step.workspace)
      case "change":
        // A database that is down cannot change.
        if (!isDatabaseUp) return
        stored[step.workspace]!++
        return world.change(workspaces[step.workspace]!)
      case "run":
        trueTime += step.ms
        return world.run(step.ms)
      case "disturb clock":
        if (disturbance === "set back") return world.setWall(-step.ms * 1_000)
        trueTime += step.ms * 1_000
        return world.suspend(step.ms * 1_000)
      case "beat": {
        if (!isDatabaseUp) return
        const before = world.feed.lastContact()?.at
        world.beat()
        if (world.feed.lastContact()?.at !== before) {
          atContact = [...stored]
          contactTime = trueTime
        }
        return
      }
      case "lose":
        return world.lose(true)
      case "lose silently":
        return world.lose(false)
      case "reconnect":
        return world.reconnect()
      case "database down":
        isDatabaseUp = false
        return world.lose(false)
      case "database up":
        isDatabaseUp = true
    }
  }

  for (const step of steps) apply(step)
  return knownResponses
}

describe("Outage", () => {
  for (const disturbance of ["suspend", "set back"] as const) {
    it.prop(
      `no response is too old or older than an earlier response, even if ${disturbance === "suspend" ? "the machine is suspended" : "the clock is set back"}`,
      { steps: Schema.Array(Step).check(Schema.isMinLength(40), Schema.isMaxLength(80)) },
      ({ steps }) => {
        checkSteps([{ step: "beat" }, ...steps], disturbance)
      },
      { arbitrary: { runs: 600 }, timeout: 60_000 }
    )
  }

  it("in an outage, a known response is served until it is too old", () => {
    const request = { step: "request", workspace: 0 } as const
    const steps = [{ step: "beat" }, request, { step: "database down" }, { step: "run", ms: 5_000 }] as const
    assert.strictEqual(checkSteps([...steps, request, request], "suspend"), 2)
    assert.strictEqual(checkSteps([...steps, { step: "run", ms: 5_001 }, request], "suspend"), 0)
    assert.strictEqual(checkSteps([...steps, { step: "disturb clock", ms: 3_600 }, request], "suspend"), 0)
    assert.strictEqual(checkSteps([...steps, { step: "disturb clock", ms: 3_600 }, request], "set back"), 1)
  })

  it("Outage logs one line when it starts to serve known responses, and one line when the feed is back", () => {
    const world = setUp()
    world.beat()
    world.report()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 10)
    world.lose(true)
    world.run(4_000)
    world.report()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 6)
    assert.deepStrictEqual(world.lines, [])
    for (const _ of [1, 2]) {
      world.record(4_000)
      world.report()
    }
    world.run(maxAgeMs)
    world.report()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 0)
    world.reconnect()
    world.beat()
    for (const _ of [1, 2]) world.report()
    assert.deepStrictEqual(world.lines.flat(), [
      "Database unreachable; responses that were current at the last contact are served for 6 s",
      "Database restored; responses are current again"
    ])
  })
})

describe("orKnown", () => {
  const known: Effect.Effect<string, Unavailable> = Effect.succeed("known")
  const failing: Effect.Effect<string, Unavailable> = Effect.fail(Unavailable)
  const respondAfter = (ms: number) => Effect.delay(known, ms).pipe(Effect.as("fresh"))
  const silent = Effect.uninterruptible(Effect.never) as Effect.Effect<string, Unavailable>

  const setUpLost = () => {
    const world = setUp()
    world.beat()
    world.lose(true)
    return world
  }

  /** Runs an effect while the clock of the test advances by 250 ms. */
  const run = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Effect.result(effect), { startImmediately: true })
      for (let step = 0; step < 5; step++) yield* TestClock.adjust(50)
      return fiber.pollUnsafe() === undefined ? "waiting" : Result.merge(yield* Fiber.join(fiber))
    })

  it.effect.each([
    ["the result of a read that responds within 250 ms", respondAfter(200), "fresh"],
    ["the known response if the read fails as unavailable", failing, "known"],
    ["the known response if the read has no result after 250 ms", silent, "known"],
    ["the error of a read that fails for another reason", Effect.fail("other"), "other"]
  ] as const)("while the feed is down, orKnown returns %s", ([, fresh, expected]) =>
    Effect.gen(function* () {
      const { outage } = setUpLost()
      const read: Effect.Effect<string, string | Unavailable> = fresh
      assert.strictEqual(yield* run(outage.orKnown(read, known)), expected)
    })
  )

  it.effect("while the feed is up, orKnown waits for a slow read", () =>
    Effect.gen(function* () {
      const world = setUp()
      world.beat()
      assert.strictEqual(yield* run(world.outage.orKnown(respondAfter(300), known)), "waiting")
    })
  )

  it.effect.each([
    ["fails if the feed then confirms its contact", "beat", Unavailable],
    ["returns the known response if the feed then goes down", "lose", "known"]
  ] as const)("after a read has failed while the feed is up, orKnown %s", ([, event, expected]) =>
    Effect.gen(function* () {
      const world = setUp()
      world.beat()
      world.run(1)
      const fiber = yield* Effect.forkChild(Effect.result(world.outage.orKnown(failing, known)), {
        startImmediately: true
      })
      yield* TestClock.adjust(100)
      assert.isUndefined(fiber.pollUnsafe())
      world.run(1)
      if (event === "beat") world.beat()
      else world.lose(true)
      yield* TestClock.adjust(100)
      assert.strictEqual(Result.merge(yield* Fiber.join(fiber)), expected)
    })
  )

  it.effect(
    "for 1 s after a failed read, orKnown does not ask the database; the pause ends with the outage",
    () =>
      Effect.gen(function* () {
        const world = setUpLost()
        let reads = 0
        const read = Effect.suspend(() => {
          reads++
          return failing
        })
        const readTwice = Effect.andThen(
          run(world.outage.orKnown(read, known)),
          run(world.outage.orKnown(read, known))
        )
        yield* readTwice
        assert.strictEqual(reads, 1)
        world.run(1_000)
        yield* readTwice
        assert.strictEqual(reads, 2)
        world.reconnect()
        world.beat()
        assert.strictEqual(yield* run(world.outage.orKnown(respondAfter(0), known)), "fresh")
      })
  )
})
