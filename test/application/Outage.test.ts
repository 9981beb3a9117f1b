import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { type CacheEntry, RevisionedCache } from "../../src/application/Freshness.ts"
import { OutagePolicy } from "../../src/application/Outage.ts"
import { Unavailable } from "../../src/application/ports/Unavailable.ts"
import type { KeyHash } from "../../src/domain/ApiKey.ts"
import { WorkspaceRevisions } from "../../src/application/WorkspaceRevisions.ts"
import { elapsedBetween, type Instant } from "../../src/domain/Instant.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import { newId } from "../support/archives.ts"

const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const
const keys = ["a".repeat(64), "b".repeat(64)] as const as readonly [KeyHash, KeyHash]
const maxAgeMs = 10_000
const heartbeatTtlMs = 3_000

/** A change feed like the one of PostgreSQL, on clocks that the test sets, and the policy over it. */
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
      contactAt === undefined ? undefined : { at: contactAt, isDatabaseSilent: true, revisionOf }
  }
  const secondsLeft: Array<number> = []
  const lines: Array<unknown> = []
  const policy = new OutagePolicy({
    feed,
    maxAgeMs,
    now: () => clock,
    observations: {
      recordRateLimitDenial: () => {},
      recordCacheLookup: () => {},
      recordOutageResponse: () => {},
      setOutageSecondsLeft: (seconds) => void secondsLeft.push(seconds)
    }
  })
  const control = {
    /** A heartbeat that was sent `delay` ms ago arrives, if the feed is connected. */
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
    /** The connection is lost, noticed at once or only when heartbeats are missing. */
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
    /** The machine is suspended, which stops the monotonic clock. */
    suspend: (ms: number) => {
      clock = { ...clock, wall: clock.wall + ms }
    },
    setWall: (ms: number) => {
      clock = { ...clock, wall: clock.wall + ms }
    }
  }
  const check = () =>
    Effect.runSync(
      Effect.provide(policy.check, Logger.layer([Logger.make(({ message }) => lines.push(message))]))
    )
  return { feed, policy, check, lines, secondsLeft, now: () => clock, isUp, ...control }
}

const Workspace = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: workspaces.length - 1 }))
const Milliseconds = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6_000 }))
const Step = Schema.Union([
  Schema.Struct({ step: Schema.Literal("request"), workspace: Workspace }),
  /** A request that only the database can serve. */
  Schema.Struct({ step: Schema.Literal("read afresh"), workspace: Workspace }),
  /** A request of the same key for something that was never read. */
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
 * Runs random steps and checks each response of the callers, of which each workspace has one: it is as new as the last
 * heartbeat that arrived and as every response before, no older than the bound by the time that has really passed,
 * from the database once contact has returned, and none follows a refusal of the key from before an outage. What is
 * read is deleted in every second version.
 */
const checkSteps = (steps: ReadonlyArray<typeof Step.Type>, disturbance: "suspend" | "set back") => {
  const world = setUp()
  const { feed, policy } = world
  const entries = new Map<string, CacheEntry<number>>()
  const cache = new RevisionedCache<number>(feed, entries)
  const stored = workspaces.map(() => 0)
  /** The versions at the last heartbeat that arrived, and those that the callers have received. */
  let atContact: ReadonlyArray<number> = stored
  const received = workspaces.map(() => 0)
  /** The workspaces whose entries are too old for everything but an outage. */
  const expired = new Set<number>()
  const revoked = new Set<number>()
  /** When the entries were read. */
  const readAt = new Map<number, number>()
  /** The callers whose last response of the database was a refusal. */
  const refused = new Set<number>()
  let isDatabaseUp = true
  let trueTime = 0
  let contactTime = 0
  let servedFromBefore = 0

  const receive = (workspace: number, version: number) => {
    assert.isAtLeast(version, received[workspace]!)
    received[workspace] = version
  }

  /** Returns true if the database refuses the key. */
  const refuse = (workspace: number): boolean => {
    if (!revoked.has(workspace)) {
      refused.delete(workspace)
      return false
    }
    refused.add(workspace)
    policy.reportRefusal(keys[workspace]!)
    return true
  }

  /** Returns true if the database responds. */
  const readAfresh = (workspace: number): boolean => {
    if (!isDatabaseUp) return false
    expired.add(workspace)
    if (refuse(workspace)) return true
    const version = stored[workspace]!
    const known = entries.get(String(workspace))
    const isDeleted = version % 2 === 1
    if (!isDeleted) {
      Effect.runSync(
        cache.load(String(workspace), Effect.succeed(version), (value) => {
          if (known !== undefined && policy.isLastKnown(known) && known.value !== value)
            policy.reportChange(known)
          return { workspace: workspaces[workspace]!, value }
        })
      )
      if (entries.get(String(workspace)) !== known) {
        expired.delete(workspace)
        readAt.set(workspace, world.now().monotonic)
      }
      policy.reportResponse()
    } else if (known !== undefined && policy.isLastKnown(known)) policy.reportChange(known)
    receive(workspace, version)
    return true
  }

  const request = (workspace: number) => {
    const cached = expired.has(workspace) ? undefined : cache.get(String(workspace))
    if (cached !== undefined) return receive(workspace, cached)
    const known = entries.get(String(workspace))
    const isServed = () => known !== undefined && !policy.isRefused(keys[workspace]!, readAt.get(workspace)!)
    if (!(isServed() && policy.isServing()) && readAfresh(workspace)) return
    const age = isServed() ? policy.findAge(known!) : undefined
    if (age === undefined) return
    servedFromBefore++
    assert.isFalse(world.isUp())
    assert.isFalse(refused.has(workspace))
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
        if (isDatabaseUp && !refuse(step.workspace)) policy.reportRead(workspaces[step.workspace]!)
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
        policy.reportSilence(world.now().monotonic + 1)
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

describe("OutagePolicy", () => {
  for (const disturbance of ["suspend", "set back"] as const) {
    it.prop(
      `no interleaving of requests, changes, losses and a clock that is ${disturbance === "suspend" ? "suspended" : "set back"} serves a value that is too old, outdated or older than before`,
      { steps: Schema.Array(Step).check(Schema.isMinLength(40), Schema.isMaxLength(80)) },
      ({ steps }) => {
        checkSteps([{ step: "beat" }, ...steps], disturbance)
      },
      { arbitrary: { runs: 600 }, timeout: 60_000 }
    )
  }

  it("the random steps serve values from before an outage", () => {
    const request = { step: "request", workspace: 0 } as const
    const steps = [{ step: "beat" }, request, { step: "database down" }, { step: "run", ms: 5_000 }] as const
    assert.strictEqual(checkSteps([...steps, request, request], "suspend"), 2)
    assert.strictEqual(checkSteps([...steps, { step: "run", ms: 5_001 }, request], "suspend"), 0)
    assert.strictEqual(checkSteps([...steps, { step: "disturb clock", ms: 3_600 }, request], "suspend"), 0)
    assert.strictEqual(checkSteps([...steps, { step: "disturb clock", ms: 3_600 }, request], "set back"), 1)
  })

  const [workspace, other] = workspaces
  const entry = (of = workspace): CacheEntry<string> => ({ workspace: of, value: "", revision: 1 })

  it("counts the age from when the last heartbeat was sent, for values of all workspaces alike", () => {
    const world = setUp()
    world.beat(400)
    world.lose(true)
    world.run(1_000)
    assert.deepStrictEqual(
      [entry(), entry(other)].map((value) => world.policy.findAge(value)),
      [1_400, 1_400]
    )
    world.run(maxAgeMs - 1_400)
    assert.strictEqual(world.policy.findAge(entry()), maxAgeMs)
    world.run(1)
    assert.isUndefined(world.policy.findAge(entry()))
    assert.isFalse(world.policy.isServing())
  })

  it("serves nothing without contact before, while the feed is up, or after a reported change", () => {
    const world = setUp()
    assert.isFalse(world.policy.isServing())
    world.beat()
    assert.isFalse(world.policy.isServing())
    assert.isUndefined(world.policy.findAge(entry()))
    world.change(workspace)
    world.lose(true)
    assert.isTrue(world.policy.isServing())
    assert.isUndefined(world.policy.findAge(entry()))
    assert.strictEqual(world.policy.findAge(entry(other)), 0)
  })

  it("a suspension while the feed is up counts", () => {
    const world = setUp()
    world.beat()
    world.suspend(3_600_000)
    assert.isUndefined(world.feed.revision())
    assert.isUndefined(world.policy.findAge(entry()))
  })

  it("asks the database first once it has responded, and no more once it fails again", () => {
    const world = setUp()
    world.beat()
    world.lose(true)
    world.policy.reportResponse()
    assert.isFalse(world.policy.isServing())
    assert.strictEqual(world.policy.findAge(entry()), 0)
    // This read was sent before the database responded.
    world.policy.reportSilence(world.now().monotonic - 1)
    assert.isFalse(world.policy.isServing())
    world.run(1)
    world.policy.reportSilence(world.now().monotonic)
    assert.isTrue(world.policy.isServing())
  })

  it("a read that cannot be compared makes a workspace count as changed once the loss is no race any more", () => {
    const world = setUp()
    world.beat()
    world.lose(true)
    world.check()
    world.run(999)
    world.policy.reportRead(workspace)
    assert.isDefined(world.policy.findAge(entry()))
    world.run(1)
    world.policy.reportRead(workspace)
    assert.isUndefined(world.policy.findAge(entry()))
    assert.isDefined(world.policy.findAge(entry(other)))
  })

  it("a change that a read shows while the feed still counts as up is not forgotten in the outage", () => {
    const world = setUp()
    world.beat()
    world.lose(false)
    world.run(1_000)
    world.policy.reportChange(entry())
    assert.isFalse(world.policy.isLastKnown(entry()))
    world.run(heartbeatTtlMs)
    world.check()
    assert.isTrue(world.policy.isServing())
    assert.isUndefined(world.policy.findAge(entry()))
    assert.isDefined(world.policy.findAge(entry(other)))
  })

  it("a refusal counts for one key, or for all keys of a workspace, while the feed counts as up and after", () => {
    const world = setUp()
    world.beat()
    world.policy.reportRefusal(keys[0])
    world.lose(false)
    for (const ms of [0, heartbeatTtlMs]) {
      world.run(ms)
      world.check()
      assert.deepStrictEqual(
        keys.map((key) => world.policy.isRefused(key, 0)),
        [true, false]
      )
      assert.isTrue(world.policy.isLastKnown(entry()))
    }
    world.policy.reportRefusal(keys[1], workspace)
    assert.isTrue(world.policy.isRefused(keys[1], 0))
    assert.isUndefined(world.policy.findAge(entry()))
    assert.isDefined(world.policy.findAge(entry(other)))
  })

  it("a refusal does not count for values that the key has read later", () => {
    const world = setUp()
    world.beat()
    const before = world.now().monotonic
    world.policy.reportRefusal(keys[0])
    world.run(1)
    assert.isTrue(world.policy.isRefused(keys[0], before))
    assert.isFalse(world.policy.isRefused(keys[0], world.now().monotonic))
  })

  it("what reads have shown is forgotten only once a heartbeat that was sent 1 s later has arrived", () => {
    const world = setUp()
    world.beat()
    const report = () => {
      world.policy.reportRefusal(keys[0])
      world.policy.reportChange(entry())
    }
    const isRemembered = () => {
      world.check()
      const isRefused = world.policy.isRefused(keys[0], 0)
      assert.strictEqual(world.policy.isLastKnown(entry()), !isRefused)
      return isRefused
    }
    report()
    world.run(1_000)
    world.beat()
    assert.isTrue(isRemembered())
    world.run(1_000)
    // This heartbeat was sent too early to prove anything.
    world.beat(1_000)
    assert.isTrue(isRemembered())
    world.beat()
    assert.isFalse(isRemembered())
    report()
    world.lose(false)
    world.run(maxAgeMs)
    assert.isTrue(isRemembered())
  })

  it("logs one line when an outage begins and one when it ends, and sets the seconds that are left", () => {
    const world = setUp()
    world.beat()
    world.check()
    world.lose(true)
    world.run(1_000)
    for (let i = 0; i < 3; i++) world.check()
    world.reconnect()
    world.beat()
    world.check()
    assert.deepStrictEqual(world.lines, [
      ["Database unreachable; responses that were current at the last contact are served for 9 s"],
      ["Database restored; responses are current again"]
    ])
    assert.deepStrictEqual(world.secondsLeft, [10, 9, 9, 9, 10])
    world.lose(true)
    world.check()
    world.run(maxAgeMs + 1)
    for (let i = 0; i < 3; i++) world.check()
    world.reconnect()
    world.beat()
    world.check()
    assert.deepStrictEqual(world.lines.slice(2), [
      ["Database unreachable; responses that were current at the last contact are served for 10 s"],
      ["Database unreachable for too long; known responses are not served any more"]
    ])
  })

  it.effect("a probe decides whether the database is asked first", () =>
    Effect.gen(function* () {
      const world = setUp()
      world.beat()
      world.lose(true)
      yield* world.policy.probe(Effect.void)
      assert.isFalse(world.policy.isServing())
      world.run(1)
      yield* world.policy.probe(Effect.fail(Unavailable))
      assert.isTrue(world.policy.isServing())
    })
  )

  it.effect("a probe without an outcome for 500 ms means that the database is silent", () =>
    Effect.gen(function* () {
      const world = setUp()
      world.beat()
      world.lose(true)
      yield* world.policy.probe(Effect.void)
      world.run(1)
      yield* Effect.forkChild(world.policy.probe(Effect.never), { startImmediately: true })
      world.run(500)
      world.check()
      assert.isFalse(world.policy.isServing())
      world.run(1)
      world.check()
      assert.isTrue(world.policy.isServing())
    })
  )

  it.live(
    "after a failed read, contact is lost once the feed goes down, and not once a later heartbeat arrives",
    () =>
      Effect.gen(function* () {
        const judge = Effect.fnUntraced(function* (then: (world: ReturnType<typeof setUp>) => void) {
          const world = setUp()
          world.beat()
          world.run(10)
          const verdict = yield* Effect.forkChild(world.policy.isContactLost(world.now().monotonic), {
            startImmediately: true
          })
          assert.isUndefined(verdict.pollUnsafe())
          world.run(10)
          then(world)
          return yield* Fiber.join(verdict)
        })
        assert.isTrue(yield* judge(({ lose }) => lose(true)))
        assert.isFalse(yield* judge(({ beat }) => beat()))
        // This heartbeat was sent before the read failed, so it proves nothing.
        assert.isTrue(
          yield* judge(({ beat, run }) => {
            beat(15)
            run(heartbeatTtlMs)
          })
        )
      })
  )
})

describe("elapsedBetween", () => {
  it("is what the clock that went further says, and never negative", () => {
    const start = { monotonic: 100, wall: 1_000 }
    assert.strictEqual(elapsedBetween(start, { monotonic: 150, wall: 1_040 }), 50)
    assert.strictEqual(elapsedBetween(start, { monotonic: 110, wall: 5_000 }), 4_000)
    assert.strictEqual(elapsedBetween(start, { monotonic: 110, wall: 0 }), 10)
    assert.strictEqual(elapsedBetween(start, { monotonic: 90, wall: 0 }), 0)
  })
})
