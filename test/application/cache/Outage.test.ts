import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { afterEach, vi } from "vitest"
import { makeOutage } from "../../../src/application/cache/Outage.ts"
import { RevisionedCache } from "../../../src/application/cache/RevisionedCache.ts"
import { FeedState } from "../../../src/application/cache/FeedState.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { readOwnMetric } from "../../support/services/metrics.ts"

const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const
const maxAgeMs = 10_000

/** Makes a change feed whose clocks the test sets, and the `Outage` service that uses the feed. */
const setUp = () => {
  const clock = { monotonic: 1_000, wall: 5_000_000 }
  vi.spyOn(performance, "now").mockImplementation(() => clock.monotonic)
  vi.spyOn(Date, "now").mockImplementation(() => clock.wall)
  const feed = new FeedState(3_000)
  let isConnected = true
  let isFirst = true
  const lines: Array<unknown> = []
  const { outage, report } = makeOutage(feed, maxAgeMs)
  const logged = (effect: Effect.Effect<void>) =>
    Effect.runSync(Effect.provide(effect, Logger.layer([Logger.make(({ message }) => lines.push(message))])))
  return {
    feed,
    outage,
    lines,
    report: () => logged(report),
    record: (ageMs: number) => logged(outage.recordResponse(ageMs)),
    /** If the feed is connected, a heartbeat arrives. */
    beat: () => {
      if (!isConnected) return
      if (isFirst) feed.revisions.invalidateAll()
      isFirst = false
      feed.recordContact({ ...clock })
    },
    /** Cuts the connection of the feed. If `isNoticed` is false, the feed stays up until heartbeats are late. */
    lose: (isNoticed: boolean) => {
      isConnected = false
      if (isNoticed) feed.markDown()
    },
    reconnect: () => {
      if (isConnected) return
      isConnected = true
      isFirst = true
      feed.markDown()
    },
    change: (workspace: WorkspaceId) => {
      if (isConnected) feed.revisions.invalidate(workspace)
    },
    /** Lets time pass. The feed notices that the process is running. */
    advance: (ms: number) => {
      for (let left = ms; left > 0; left -= 250) {
        clock.monotonic += Math.min(left, 250)
        clock.wall += Math.min(left, 250)
        feed.findPauseEnd()
      }
    },
    /** Sets the wall clock. If it jumps ahead, this is what a suspended machine sees: only its monotonic clock stops. */
    moveWallClock: (ms: number) => {
      clock.wall += ms
    }
  }
}

afterEach(() => {
  vi.restoreAllMocks()
})

const kinds = ["request", "change", "run", "beat", "lose", "lose silently", "reconnect"] as const
const Step = Schema.Struct({
  kind: Schema.Literals([...kinds, "database down", "database up", "suspend", "set back"]),
  workspace: Schema.Literals([0, 1]),
  ms: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6_000 }))
})
type Step = typeof Step.Type
const step = (kind: Step["kind"], ms = 0): Step => ({ kind, workspace: 0, ms })

/**
 * Runs steps with one caller per workspace, and checks each response. No response is older than an earlier response to
 * the same caller. A known response is at least as new as the state at the last heartbeat that arrived, and its age,
 * measured in true time, is at most `maxAgeMs`. While the feed is up, no known response is served. Returns the number
 * of known responses.
 */
const checkSteps = (steps: ReadonlyArray<Step>): number => {
  const world = setUp()
  const limits = { maxSize: 2, maxAgeMs: Number.POSITIVE_INFINITY }
  const cache = new RevisionedCache<number>(world.feed, limits, Object.is)
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

  const request = (workspace: number) => {
    const key = String(workspace)
    const cached = cache.get(key)
    if (cached !== undefined) return receive(workspace, cached)
    if (isDatabaseUp) {
      const fresh = Effect.succeed(stored[workspace]!)
      const toEntry = (value: number) => ({ workspace: workspaces[workspace]!, value, size: 1 })
      return receive(workspace, Effect.runSync(cache.load(key, fresh, toEntry)))
    }
    const known = cache.findLastKnown(key)
    const age = world.outage.findAge()
    if (known === undefined || age === undefined) return
    knownResponses++
    assert.isFalse(world.feed.isUp())
    assert.isAtMost(trueTime - contactTime, maxAgeMs)
    assert.isAtLeast(age, trueTime - contactTime)
    assert.isAtLeast(known, atContact[workspace]!)
    receive(workspace, known)
  }

  const apply = ({ kind, workspace, ms }: Step) => {
    switch (kind) {
      case "request":
        return request(workspace)
      case "change":
        // A database that is down cannot change.
        if (!isDatabaseUp) return
        stored[workspace]!++
        return world.change(workspaces[workspace]!)
      case "run":
        trueTime += ms
        return world.advance(ms)
      case "suspend":
        trueTime += ms * 1_000
        return world.moveWallClock(ms * 1_000)
      case "set back":
        return world.moveWallClock(-ms * 1_000)
      case "beat": {
        if (!isDatabaseUp) return
        const before = world.feed.lastContact()
        world.beat()
        if (world.feed.lastContact() === before) return
        atContact = [...stored]
        contactTime = trueTime
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
  // A suspension after the clock was set back by as much would look like no suspension.
  for (const [disturbance, what] of [
    ["set back", "the machine is suspended"],
    ["suspend", "the clock is set back"]
  ]) {
    it.prop(
      `no response is too old or older than an earlier response, even if ${what}`,
      { steps: Schema.Array(Step).check(Schema.isMinLength(40), Schema.isMaxLength(80)) },
      ({ steps }) => {
        checkSteps([step("beat"), ...steps.filter(({ kind }) => kind !== disturbance)])
      },
      { arbitrary: { runs: 600 }, timeout: 60_000 }
    )
  }

  it("in an outage, a known response is served until it is too old", () => {
    const request = step("request")
    const steps = [step("beat"), request, step("database down"), step("run", 5_000)]
    assert.strictEqual(checkSteps([...steps, request, request]), 2)
    assert.strictEqual(checkSteps([...steps, step("run", 5_001), request]), 0)
    assert.strictEqual(checkSteps([...steps, step("suspend", 3_600), request]), 0)
    assert.strictEqual(checkSteps([...steps, step("set back", 3_600), request]), 1)
  })

  it("Outage logs one line when it starts to serve known responses, and one line when the feed is back", () => {
    const world = setUp()
    world.beat()
    world.report()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 10)
    world.lose(true)
    world.advance(4_000)
    world.report()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 6)
    assert.deepStrictEqual(world.lines, [])
    for (const _ of [1, 2]) {
      world.record(4_000)
      world.report()
    }
    world.advance(maxAgeMs)
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
  type Read = Effect.Effect<string, string | Unavailable>
  const known: Read = Effect.succeed("known")
  const failing: Read = Effect.fail(Unavailable)
  const respondAfter = (ms: number): Read => Effect.delay(Effect.succeed("fresh"), ms)
  const silent: Read = Effect.uninterruptible(Effect.never)

  const setUpConnected = () => {
    const world = setUp()
    world.beat()
    /** Starts `orKnown` with this read. The function that it returns waits for a number of steps of 50 ms. */
    const start = Effect.fnUntraced(function* (fresh: Read) {
      const result = Effect.result(world.outage.orKnown(fresh, known))
      const fiber = yield* Effect.forkChild(result, { startImmediately: true })
      return Effect.fnUntraced(function* (steps: number) {
        for (let step = 0; step < steps; step++) yield* TestClock.adjust(50)
        return fiber.pollUnsafe() === undefined ? "waiting" : Result.merge(yield* Fiber.join(fiber))
      })
    })
    const run = (fresh: Read) => Effect.flatMap(start(fresh), (wait) => wait(5))
    return { ...world, start, run }
  }

  it.effect.each([
    ["the result of a read that responds within 250 ms", respondAfter(200), "fresh"],
    ["the known response if the read fails as unavailable", failing, "known"],
    ["the known response if the read has no result after 250 ms", silent, "known"],
    ["the error of a read that fails for another reason", Effect.fail("other"), "other"]
  ] as const)("while the feed is down, orKnown returns %s", ([, fresh, expected]) =>
    Effect.gen(function* () {
      const { lose, run } = setUpConnected()
      lose(true)
      assert.strictEqual(yield* run(fresh), expected)
    })
  )

  it.effect("while the feed is up, orKnown waits for a slow read", () =>
    Effect.gen(function* () {
      const { run } = setUpConnected()
      assert.strictEqual(yield* run(respondAfter(300)), "waiting")
    })
  )

  it.effect.each([
    ["fails if the feed then confirms its contact", "beat", Unavailable],
    ["returns the known response if the feed then goes down", "lose", "known"]
  ] as const)("after a read has failed while the feed is up, orKnown %s", ([, event, expected]) =>
    Effect.gen(function* () {
      const world = setUpConnected()
      world.advance(1)
      const wait = yield* world.start(failing)
      assert.strictEqual(yield* wait(2), "waiting")
      world.advance(1)
      if (event === "beat") world.beat()
      else world.lose(true)
      assert.strictEqual(yield* wait(2), expected)
    })
  )

  it.effect(
    "for 1 s after a failed read, orKnown does not ask the database; the pause ends with the outage",
    () =>
      Effect.gen(function* () {
        const { run, lose, advance, reconnect, beat } = setUpConnected()
        lose(true)
        let reads = 0
        const read = Effect.andThen(
          Effect.sync(() => reads++),
          failing
        )
        for (const count of [1, 2]) {
          for (const _ of [1, 2]) yield* run(read)
          assert.strictEqual(reads, count)
          advance(1_000)
        }
        reconnect()
        beat()
        assert.strictEqual(yield* run(respondAfter(0)), "fresh")
      })
  )
})
