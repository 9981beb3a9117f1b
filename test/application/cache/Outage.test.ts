import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { afterAll, afterEach, vi } from "vitest"
import { FeedState } from "../../../src/application/cache/FeedState.ts"
import { makeOutage } from "../../../src/application/cache/Outage.ts"
import { checkIsUp, RevisionedCache } from "../../../src/application/cache/RevisionedCache.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { readOwnMetric } from "../../support/services/metrics.ts"

const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const
const maxAgeMs = 10_000

/** Makes a change feed whose clocks the test sets, and the `Outage` service that uses the feed. */
const setUp = () => {
  const clock = { monotonic: 1_000, wall: 5_000_000 }
  vi.spyOn(performance, "now").mockImplementation(() => clock.monotonic)
  vi.spyOn(Date, "now").mockImplementation(() => clock.wall)
  const feed = new FeedState(3_000)
  const lines: Array<unknown> = []
  const { outage, report } = makeOutage(feed, maxAgeMs)
  const pause = (ms: number, isSuspended = false) => {
    clock.monotonic += isSuspended ? 1 : ms
    clock.wall += ms
    return checkIsUp(feed)
  }
  const logged = (effect: Effect.Effect<void>) =>
    Effect.runSync(Effect.provide(effect, Logger.layer([Logger.make(({ message }) => lines.push(message))])))
  return {
    clock,
    feed,
    outage,
    lines,
    report: () => logged(report),
    record: (ageMs: number) => logged(outage.recordResponse(ageMs)),
    beat: () => feed.recordContact({ ...clock }),
    /** Pauses the process. Returns true if the feed is still up. A suspension also stops the monotonic clock. */
    pause,
    /** Lets time pass. The feed notices that the process is running. */
    advance: (ms: number) => {
      for (let left = ms; left > 0; left -= 250) {
        pause(Math.min(left, 250))
        feed.observePause()
      }
    }
  }
}

afterEach(() => void vi.restoreAllMocks())

const repeat = <Kind extends string>(count: number, ...kinds: ReadonlyArray<Kind>) =>
  Array.from({ length: count }, () => kinds).flat()

/**
 * - `request`, `finish`: a caller requests the value of the workspace, and a read ends
 * - `commit`: the database stores a new value, and notifies the feed
 * - `beat`, `receive`: the feed sends a heartbeat, and receives the next notification or heartbeat
 * - `invalidate`: a reader has found a change that the feed has not reported
 * - `run`: time passes
 * - `stop`, `suspend`: the process pauses, while the database changes
 */
const kinds = [
  ...repeat(1, "invalidate", "stop", "suspend", "set back", "lose", "lose silently"),
  ...repeat(2, "finish", "database down", "database up"),
  ...repeat(3, "commit", "reconnect"),
  ...repeat(4, "beat", "run"),
  ...repeat(8, "request", "receive")
]

/** A step: its kind, the number of its workspace, the number of its read, and its duration. */
const Step = Schema.Struct({
  kind: Schema.Literals(kinds),
  workspace: Schema.Literals([0, 1]),
  nth: Schema.Literals([0, 1, 2, 3, 4, 5]),
  ms: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_000 }))
})
type Step = typeof Step.Type

/** A database read in progress. If `version` is undefined, the read sees the version at its end. */
interface Read {
  readonly workspace: number
  readonly version: number | undefined
  readonly result: Deferred.Deferred<number>
}

/** The numbers of current and of known responses that the cache has returned in all runs of `checkSteps`. */
const answered = { current: 0, known: 0 }

/**
 * Runs steps against a database whose values are version numbers, and checks each response:
 *
 * - A response has at least the highest version that, before its request, the feed reported or a response contained.
 * - A cached response is at least as new as the database was when the feed sent the last heartbeat that arrived. The
 *   feed is up if it sent this heartbeat less than 3 s ago, after the last pause, and on the current connection.
 * - The cache returns a known response only while the feed is down, and only until its true age exceeds `maxAgeMs`.
 */
const checkSteps = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const world = setUp()
  const cache = new RevisionedCache<number>(world.feed, { maxSize: 2, maxAgeMs: 30_000 }, Object.is)
  const stored = workspaces.map(() => 0)
  /** For each workspace, the lowest version that a response may contain. */
  const floors = workspaces.map(() => 0)
  /** The messages in flight to the feed, in order. */
  let messages: Array<() => void> = []
  /** The database had these `versions` at the `time` when the feed sent the heartbeat that arrived last. */
  let contact = { versions: [...stored], time: 0 }
  /** `isLost`: true until a heartbeat arrives on the current connection. `isConnected`: true while messages are sent. */
  let [isLost, isConnected] = [true, true]
  let pauseEnd = 0
  let time = 0
  let isDatabaseUp = true
  let reads: Array<Read> = []
  const fibers: Array<Fiber.Fiber<void>> = []

  const raiseFloor = (workspace: number, version: number) => {
    floors[workspace] = Math.max(floors[workspace]!, version)
  }
  const receive = (workspace: number, version: number, floor: number) => {
    assert.isAtLeast(version, floor)
    raiseFloor(workspace, version)
  }

  const startRead = (workspace: number, version: number | undefined) =>
    Effect.suspend(() => {
      const read: Read = { workspace, version, result: Deferred.makeUnsafe() }
      reads.push(read)
      return Deferred.await(read.result)
    })
  const finish = (read: Read) => {
    reads = reads.filter((other) => other !== read)
    return Deferred.succeed(read.result, read.version ?? stored[read.workspace]!)
  }

  const findKnown = (workspace: number): number | undefined => {
    const known = cache.findLastKnown(String(workspace))
    const age = world.outage.findAge()
    if (known === undefined || age === undefined) return undefined
    answered.known++
    assert.isFalse(checkIsUp(world.feed))
    assert.isAtMost(time - contact.time, maxAgeMs)
    assert.isAtLeast(age, time - contact.time)
    assert.isAtLeast(known, contact.versions[workspace]!)
    return known
  }

  const isAlive = () => !isLost && time - contact.time < 3_000
  const send = (message: () => void) => void (isConnected && messages.push(message))
  const commit = (workspace: number) => {
    const version = ++stored[workspace]!
    send(() => {
      world.feed.invalidate(workspaces[workspace]!)
      raiseFloor(workspace, version)
    })
  }
  const disconnect = () => {
    world.feed.markDown()
    messages = []
    isLost = true
    isConnected = false
  }
  const beat = () => {
    const at = { ...world.feed.observePause() }
    const sent = { versions: [...stored], time }
    send(() => {
      const { globalRevision } = world.feed
      world.feed.recordContact(at)
      assert.strictEqual(world.feed.globalRevision === globalRevision, isAlive())
      for (const [workspace, version] of sent.versions.entries()) raiseFloor(workspace, version)
      contact = sent
      isLost = false
    })
  }

  const apply = Effect.fnUntraced(function* ({ kind, workspace, nth, ms }: Step) {
    const read = reads[nth % reads.length]
    switch (kind) {
      case "request": {
        const [floor, key] = [floors[workspace]!, String(workspace)]
        const current = cache.get(key)
        if (current !== undefined) answered.current++
        assert.isAtLeast(current ?? Number.POSITIVE_INFINITY, contact.versions[workspace]!)
        const found = current ?? (isDatabaseUp ? undefined : findKnown(workspace))
        if (found !== undefined) return receive(workspace, found, floor)
        if (!isDatabaseUp) return
        const toEntry = (value: number) => ({ workspace: workspaces[workspace]!, value, size: 1 })
        const read = startRead(workspace, nth % 2 === 0 ? stored[workspace] : undefined)
        const response = Effect.map(cache.load(key, read, toEntry), (version) =>
          receive(workspace, version, floor)
        )
        fibers.push(yield* Effect.forkChild(response, { startImmediately: true }))
        // Most reads end immediately.
        if (nth > 1) yield* finish(reads.at(-1)!)
        return
      }
      case "finish":
        if (read !== undefined) yield* finish(read)
        return
      case "commit":
        return isDatabaseUp ? commit(workspace) : undefined
      case "beat":
        return beat()
      case "receive":
        return messages.shift()?.()
      case "invalidate":
        return cache.invalidate(workspaces[workspace]!)
      case "run":
        time += ms
        return world.advance(ms)
      case "stop":
      case "suspend":
        world.pause(501 + ms * nth, kind === "suspend")
        time += 501 + ms * nth
        pauseEnd = time
        return isDatabaseUp ? commit(workspace) : undefined
      case "set back":
        world.clock.wall -= ms * 1_000
        return
      case "lose":
        return disconnect()
      case "reconnect":
        if (!isDatabaseUp || isConnected) return
        disconnect()
        isConnected = true
        return
      case "lose silently":
      case "database down":
        isConnected = false
        isDatabaseUp &&= kind !== "database down"
        return
      case "database up":
        isDatabaseUp = true
    }
  })

  const run = Effect.fnUntraced(function* (step: Step) {
    yield* apply(step)
    assert.strictEqual(checkIsUp(world.feed), isAlive() && contact.time >= pauseEnd)
    // Lets every fiber run until the fiber waits.
    for (let turn = 0; turn < 5; turn++) yield* Effect.yieldNow
  })

  beat()
  messages.shift()!()
  for (const step of steps) yield* run(step)
  for (const read of reads) yield* finish(read)
  for (const fiber of fibers) yield* Fiber.join(fiber)
})

describe("RevisionedCache and Outage", () => {
  // A clock that is set back by the length of a suspension hides the suspension, so each test omits one of these events.
  for (const [disturbance, what] of [
    ["set back", "the machine is suspended"],
    ["suspend", "the clock is set back"]
  ]) {
    it.effect.prop(
      `no response is older than the last reported change, an earlier response or the maximum age, even if ${what}`,
      { steps: Schema.Array(Step).check(Schema.isMinLength(60), Schema.isMaxLength(80)) },
      ({ steps }) => checkSteps(steps.filter(({ kind }) => kind !== disturbance)),
      { arbitrary: { runs: 600 }, timeout: 60_000 }
    )
  }

  // In the random steps, the cache must return many current and many known responses.
  afterAll(() => assert.isAbove(Math.min(answered.current, answered.known), 100))
})

describe("Outage", () => {
  it.each([false, true])(
    "after a heartbeat, the feed is up for 3 s or until the process pauses for more than 500 ms; machine suspended: %s",
    (isSuspended) => {
      const { beat, pause } = setUp()
      beat()
      const answers = Array.from({ length: 7 }, () => pause(450, isSuspended))
      assert.strictEqual(answers.indexOf(false), 6)
      beat()
      assert.isFalse(pause(501, isSuspended) || pause(1, isSuspended))
    }
  )

  it.each<
    readonly [what: string, change: (world: ReturnType<typeof setUp>) => unknown, age: number | undefined]
  >([
    ["is the maximum age", ({ advance }) => advance(maxAgeMs), maxAgeMs],
    ["exceeds the maximum age", ({ advance }) => advance(maxAgeMs + 1), undefined],
    ["includes a suspension", ({ clock }) => (clock.wall += 3_600_000), undefined],
    ["includes setting the clock back", ({ clock }) => (clock.wall -= 3_600_000), 0]
  ])(
    "in an outage, findAge returns the time since the last contact, or undefined if this time exceeds the maximum age: the time %s",
    (_, change, age) => {
      const world = setUp()
      world.beat()
      assert.isUndefined(world.outage.findAge())
      world.feed.markDown()
      change(world)
      assert.strictEqual(world.outage.findAge(), age)
    }
  )

  it("Outage logs one line when the service starts to serve known responses, and one line when the feed is up again", () => {
    const world = setUp()
    world.beat()
    world.report()
    assert.strictEqual(readOwnMetric("prompt_retrieval_outage_seconds_left"), 10)
    world.feed.markDown()
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
    world.feed.markDown()
    world.beat()
    for (const _ of [1, 2]) world.report()
    assert.deepStrictEqual(world.lines.flat(), [
      "Database unreachable; responses that were current at the last contact are served for 6 s",
      "Database restored; responses are current again"
    ])
  })
})

describe("readOrServeKnown", () => {
  const test = makeTest(it.effect)
  type Read = Effect.Effect<string, string | Unavailable>
  const known: Read = Effect.succeed("known")
  const failing: Read = Effect.fail(Unavailable)
  const respondAfter = (ms: number): Read => Effect.delay(Effect.succeed("fresh"), ms)
  const silent: Read = Effect.uninterruptible(Effect.never)

  type World = ReturnType<typeof setUp>
  type Event = (world: World) => void
  const lose: Event = (world) => world.feed.markDown()
  const beat: Event = (world) => world.beat()
  const nothing: Event = () => {}

  /** Returns the result of `readOrServeKnown`, or "waiting" after 250 ms. The event occurs after 100 ms. */
  const run = Effect.fnUntraced(function* (world: World, fresh: Read, event = nothing) {
    const result = Effect.result(world.outage.readOrServeKnown(fresh, known))
    const fiber = yield* Effect.forkChild(result, { startImmediately: true })
    for (let step = 1; step <= 5; step++) {
      yield* TestClock.adjust(50)
      if (step === 2) event(world)
    }
    return fiber.pollUnsafe() === undefined ? "waiting" : Result.merge(yield* Fiber.join(fiber))
  })

  it.effect.each<readonly [when: string, expected: unknown, before: Event, fresh: Read, event: Event]>([
    ["the feed is down, and the read responds within 250 ms", "fresh", lose, respondAfter(200), nothing],
    ["the feed is down, and the read fails as unavailable", "known", lose, failing, nothing],
    ["the feed is down, and the read has no result after 250 ms", "known", lose, silent, nothing],
    ["the feed is down, and the read fails for another reason", "other", lose, Effect.fail("other"), nothing],
    ["the feed is up, and the read is slow", "waiting", nothing, respondAfter(300), beat],
    ["the feed is up, and the read fails as unavailable", "waiting", nothing, failing, nothing],
    ["the feed confirms its contact after the read has failed", Unavailable, nothing, failing, beat],
    ["the feed goes down after the read has failed", "known", nothing, failing, lose]
  ])("if %s, the result of readOrServeKnown after 250 ms is %j", ([, expected, before, fresh, event]) =>
    Effect.gen(function* () {
      const world = setUp()
      world.beat()
      before(world)
      world.advance(1)
      assert.strictEqual(yield* run(world, fresh, event), expected)
    })
  )

  test("for 1 s after a failed read, or until the outage ends, readOrServeKnown does not query the database", function* () {
    const world = setUp()
    world.beat()
    world.feed.markDown()
    let reads = 0
    const read = Effect.andThen(
      Effect.sync(() => reads++),
      failing
    )
    const counts: Array<number> = []
    for (const ms of [1, 999, 1]) {
      world.advance(ms)
      yield* run(world, read)
      counts.push(reads)
    }
    assert.deepStrictEqual(counts, [1, 1, 2])
    world.feed.markDown()
    world.beat()
    assert.strictEqual(yield* run(world, respondAfter(0)), "fresh")
  })
})
