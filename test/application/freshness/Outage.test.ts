import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { type CacheEntry, RevisionedCache } from "../../../src/application/freshness/RevisionedCache.ts"
import { makeOutage } from "../../../src/application/freshness/Outage.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import type { KeyHash } from "../../../src/domain/ApiKey.ts"
import { WorkspaceRevisions } from "../../../src/application/freshness/WorkspaceRevisions.ts"
import type { Instant } from "../../../src/domain/time/Instant.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { readOwnMetric } from "../../support/services/metrics.ts"

const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const
const keys = ["a".repeat(64), "b".repeat(64)] as const as readonly [KeyHash, KeyHash]
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
    lastContact: () => (contactAt === undefined ? undefined : { at: contactAt, revisionOf })
  }
  const lines: Array<unknown> = []
  const { outage: policy, check: checkPolicy } = makeOutage({
    feed,
    maxAgeMs,
    now: () => clock
  })
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
  const check = () =>
    Effect.runSync(
      Effect.provide(checkPolicy, Logger.layer([Logger.make(({ message }) => lines.push(message))]))
    )
  return { feed, policy, check, lines, now: () => clock, isUp, ...control }
}

const Workspace = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: workspaces.length - 1 }))
const Milliseconds = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6_000 }))
const Step = Schema.Union([
  Schema.Struct({ step: Schema.Literal("request"), workspace: Workspace }),
  /** A request that only the database can serve. */
  Schema.Struct({ step: Schema.Literal("read afresh"), workspace: Workspace }),
  /** A request with the key of this workspace for a resource that was never read. */
  Schema.Struct({ step: Schema.Literal("read unknown"), workspace: Workspace }),
  Schema.Struct({ step: Schema.Literals(["change", "revoke or restore"]), workspace: Workspace }),
  Schema.Struct({ step: Schema.Literal("run"), ms: Milliseconds }),
  Schema.Struct({ step: Schema.Literal("beat") }),
  Schema.Struct({
    step: Schema.Literals(["lose", "lose silently", "reconnect", "database down", "database up"])
  }),
  Schema.Struct({ step: Schema.Literal("disturb clock"), ms: Milliseconds })
])

/**
 * Runs random steps with one caller per workspace, and checks each response. No response is older than an earlier
 * response to the same caller. A response from before an outage is at least as new as the state at the last heartbeat
 * that arrived, and its age, measured in true time, is at most `maxAgeMs`. While the feed is up, no such response is
 * served. If the latest lookup of a caller's key rejected the key, the caller gets no such response. In every second
 * version of a value, the value is deleted.
 */
const checkSteps = (steps: ReadonlyArray<typeof Step.Type>, disturbance: "suspend" | "set back") => {
  const world = setUp()
  const { feed, policy } = world
  const entries = new Map<string, CacheEntry<number>>()
  policy.onInvalidate((changed) => {
    for (const [index, workspace] of workspaces.entries())
      if (changed === workspace || changed === keys[index]) entries.delete(String(index))
  })
  const cache = new RevisionedCache<number>(feed, entries)
  const stored = workspaces.map(() => 0)
  /** The version of each workspace when the last heartbeat arrived. */
  let atContact: ReadonlyArray<number> = stored
  const received = workspaces.map(() => 0)
  /** The workspaces whose entries are so old that they are served only in an outage. */
  const expired = new Set<number>()
  const revoked = new Set<number>()
  /** The workspaces whose key was rejected when the database last looked up the key. */
  const rejected = new Set<number>()
  let isDatabaseUp = true
  let trueTime = 0
  let contactTime = 0
  let servedFromBefore = 0

  const receive = (workspace: number, version: number) => {
    assert.isAtLeast(version, received[workspace]!)
    received[workspace] = version
  }

  /** Returns true if the database rejects the key. */
  const reject = (workspace: number): boolean => {
    if (!revoked.has(workspace)) {
      rejected.delete(workspace)
      return false
    }
    rejected.add(workspace)
    policy.invalidate(keys[workspace]!)
    return true
  }

  /** Reads from the database. Returns true if the database responds. */
  const readAfresh = (workspace: number): boolean => {
    if (!isDatabaseUp) return false
    expired.add(workspace)
    if (reject(workspace)) return true
    const version = stored[workspace]!
    const known = entries.get(String(workspace))
    const isDeleted = version % 2 === 1
    if (!isDeleted) {
      Effect.runSync(
        cache.load(String(workspace), Effect.succeed(version), (value) => {
          if (known !== undefined && policy.isLastKnown(known) && known.value !== value) {
            policy.invalidate(workspaces[workspace]!)
            return undefined
          }
          return { workspace: workspaces[workspace]!, value }
        })
      )
      if (entries.get(String(workspace)) !== known) expired.delete(workspace)
    } else if (known !== undefined && policy.isLastKnown(known)) policy.invalidate(workspaces[workspace]!)
    receive(workspace, version)
    return true
  }

  const request = (workspace: number) => {
    const cached = expired.has(workspace) ? undefined : cache.get(String(workspace))
    if (cached !== undefined) return receive(workspace, cached)
    if (readAfresh(workspace)) return
    const known = entries.get(String(workspace))
    const age = known !== undefined && policy.isLastKnown(known) ? policy.findAge() : undefined
    if (age === undefined) return
    policy.recordResponse(age)
    servedFromBefore++
    assert.isFalse(world.isUp())
    assert.isFalse(rejected.has(workspace))
    assert.isAtMost(trueTime - contactTime, maxAgeMs)
    assert.isAtLeast(age, trueTime - contactTime)
    assert.isAtLeast(known!.value, atContact[workspace]!)
    receive(workspace, known!.value)
  }

  const apply = (step: typeof Step.Type) => {
    switch (step.step) {
      case "request":
        return request(step.workspace)
      case "read afresh":
        return void readAfresh(step.workspace)
      case "read unknown":
        if (isDatabaseUp && !reject(step.workspace) && policy.findAge() !== undefined)
          policy.invalidate(workspaces[step.workspace]!)
        return
      case "change":
      case "revoke or restore":
        // A database that is down cannot change.
        if (!isDatabaseUp) return
        if (step.step === "change") stored[step.workspace]!++
        else if (!revoked.delete(step.workspace)) revoked.add(step.workspace)
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
        const before = feed.lastContact()?.at
        world.beat()
        if (feed.lastContact()?.at !== before) {
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

  for (const step of steps) {
    apply(step)
    world.check()
  }
  return servedFromBefore
}

describe("Outage", () => {
  for (const disturbance of ["suspend", "set back"] as const) {
    it.prop(
      `even if ${disturbance === "suspend" ? "the machine is suspended" : "the clock is set back"}, no response exceeds the maximum age, and no response is older than an earlier response or than the state at the last heartbeat`,
      { steps: Schema.Array(Step).check(Schema.isMinLength(40), Schema.isMaxLength(80)) },
      ({ steps }) => {
        checkSteps([{ step: "beat" }, ...steps], disturbance)
      },
      { arbitrary: { runs: 600 }, timeout: 60_000 }
    )
  }

  it("in an outage, a value from before the outage is served until the value is too old", () => {
    const request = { step: "request", workspace: 0 } as const
    const steps = [{ step: "beat" }, request, { step: "database down" }, { step: "run", ms: 5_000 }] as const
    assert.strictEqual(checkSteps([...steps, request, request], "suspend"), 2)
    assert.strictEqual(checkSteps([...steps, { step: "run", ms: 5_001 }, request], "suspend"), 0)
    assert.strictEqual(checkSteps([...steps, { step: "disturb clock", ms: 3_600 }, request], "suspend"), 0)
    assert.strictEqual(checkSteps([...steps, { step: "disturb clock", ms: 3_600 }, request], "set back"), 1)
  })

  it("Outage logs one line when it starts to serve values from before an outage, and one line when it stops", () => {
    const world = setUp()
    world.beat()
    world.check()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 10)
    world.lose(true)
    world.check()
    assert.deepStrictEqual(world.lines, [])
    for (const _ of [1, 2]) {
      world.policy.recordResponse(0)
      world.check()
    }
    world.reconnect()
    world.beat()
    world.check()
    world.lose(true)
    world.policy.recordResponse(0)
    world.check()
    world.run(maxAgeMs + 1)
    for (const _ of [1, 2]) world.check()
    const begins = "Database unreachable; responses that were current at the last contact are served for 10 s"
    assert.deepStrictEqual(world.lines.flat(), [
      begins,
      "Database restored; responses are current again",
      begins,
      "Database unreachable for too long; known responses are not served any more"
    ])
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 0)
  })

  const silent = Effect.uninterruptible(Effect.never) as Effect.Effect<string, Unavailable>
  const failing = Effect.fail(Unavailable) as Effect.Effect<string, Unavailable>
  const setUpLost = () => {
    const world = setUp()
    world.beat()
    world.lose(true)
    return world
  }

  it.live(
    "in an outage, orKnown returns the known value immediately if the database fails, and after 250 ms if the database has not responded",
    () =>
      Effect.gen(function* () {
        const { policy } = setUpLost()
        const known = Effect.succeed("known")
        assert.strictEqual(yield* policy.orKnown(Effect.succeed("fresh"), known), "fresh")
        assert.strictEqual(yield* policy.orKnown(Effect.delay(Effect.succeed("fresh"), 150), known), "fresh")
        assert.strictEqual(yield* policy.orKnown(failing, known), "known")
        const startedAt = performance.now()
        assert.strictEqual(yield* policy.orKnown(silent, known), "known")
        assert.isAtLeast(performance.now() - startedAt, 240)
      })
  )

  it.live(
    "orKnown returns no known value while the change feed is up, or after an error other than Unavailable",
    () =>
      Effect.gen(function* () {
        const world = setUp()
        world.beat()
        const known = Effect.succeed("known")
        const slow = Effect.delay(Effect.succeed("fresh"), 400)
        assert.strictEqual(yield* world.policy.orKnown(slow, known), "fresh")
        const failed = yield* Effect.forkChild(Effect.result(world.policy.orKnown(failing, known)))
        yield* Effect.sleep(50)
        world.run(1)
        world.beat()
        assert.deepStrictEqual(yield* Fiber.join(failed), Result.fail(Unavailable))
        const other = Effect.fail("other") as Effect.Effect<string, string>
        assert.deepStrictEqual(
          yield* Effect.result(setUpLost().policy.orKnown(other, known)),
          Result.fail("other")
        )
      })
  )

  it.live(
    "orKnown returns the known value if the change feed goes down shortly after the read has failed",
    () =>
      Effect.gen(function* () {
        const world = setUp()
        world.beat()
        world.run(1)
        const read = yield* Effect.forkChild(world.policy.orKnown(failing, Effect.succeed("known")))
        yield* Effect.sleep(50)
        world.lose(true)
        assert.strictEqual(yield* Fiber.join(read), "known")
      })
  )

  it.live(
    "in an outage, for 250 ms after a failed read, protect runs no read; then protect runs one read, whose result decides whether later reads run",
    () =>
      Effect.gen(function* () {
        const { policy } = setUpLost()
        let calls = 0
        const count = <A>(result: Effect.Effect<A, Unavailable>) =>
          Effect.result(
            policy.protect(
              Effect.suspend(() => {
                calls++
                return result
              })
            )
          )
        yield* count(failing)
        for (const _ of [1, 2, 3]) assert.isTrue(Result.isFailure(yield* count(Effect.succeed(1))))
        assert.strictEqual(calls, 1)
        yield* Effect.sleep(270)
        // This one read gets no response, so it opens the circuit breaker again, although its caller was interrupted.
        const probe = yield* Effect.forkChild(count(silent), { startImmediately: true })
        yield* count(Effect.succeed(1))
        yield* Fiber.interrupt(probe)
        assert.strictEqual(calls, 2)
        yield* Effect.sleep(600)
        assert.deepStrictEqual(yield* count(Effect.succeed(1)), Result.succeed(1))
        assert.deepStrictEqual(yield* count(Effect.succeed(2)), Result.succeed(2))
        assert.strictEqual(calls, 4)
      })
  )

  it.live(
    "a slow read does not open the circuit breaker of protect if another read succeeded after the slow read started",
    () =>
      Effect.gen(function* () {
        const { policy } = setUpLost()
        const slow = yield* Effect.forkChild(policy.protect(silent), { startImmediately: true })
        yield* Effect.sleep(100)
        yield* policy.protect(Effect.void)
        yield* Effect.sleep(300)
        assert.strictEqual(yield* policy.protect(Effect.succeed(1)), 1)
        yield* Fiber.interrupt(slow)
      })
  )

  it.effect(
    "a read that fails in one outage does not make protect reject reads after that outage or in the next outage",
    () =>
      Effect.gen(function* () {
        const world = setUpLost()
        yield* Effect.result(world.policy.protect(failing))
        world.reconnect()
        world.run(1)
        world.beat()
        assert.strictEqual(yield* world.policy.protect(Effect.succeed(1)), 1)
        world.lose(true)
        assert.strictEqual(yield* world.policy.protect(Effect.succeed(2)), 2)
      })
  )
})
