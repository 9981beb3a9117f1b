import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { vi } from "vitest"
import { Unavailable } from "../../src/application/ports/Unavailable.ts"
import { ReadGate, withRequestDeadline } from "../../src/application/ReadGate.ts"
import { workspace } from "../support/archives.ts"
import { makeTest } from "../support/makeTest.ts"

const test = makeTest(it.effect, ReadGate.layer)

test("at most 12 reads of a workspace run at the same time", function* () {
  const { withPermit } = yield* ReadGate
  const end = Latch.makeUnsafe()
  const running = [0, 0]
  const all = [workspace().id, workspace().id].flatMap((id, index) => {
    const read = Effect.andThen(
      Effect.sync(() => running[index]!++),
      end.await
    )
    return Array.from({ length: 20 }, () => withPermit(id, read))
  })
  const fiber = yield* Effect.forkChild(Effect.all(all, { concurrency: "unbounded" }))
  yield* Effect.yieldNow
  assert.deepStrictEqual(running, [12, 12])
  end.openUnsafe()
  yield* Fiber.join(fiber)
  assert.deepStrictEqual(running, [20, 20])
})

it.live("other work runs between two large steps, and small steps do not wait for large steps", () =>
  Effect.gen(function* () {
    const { runStep } = yield* ReadGate
    const order: Array<string> = []
    const add = (name: string) => () => void order.push(name)
    const large = runStep(1024 * 1024, () => {
      order.push("large")
      setImmediate(add("other"))
    })
    yield* Effect.all([large, large, runStep(1, add("small"))], { concurrency: "unbounded" })
    assert.deepStrictEqual(order, ["small", "large", "other", "large"])
  }).pipe(Effect.provide(ReadGate.layer))
)

/** Replaces the timers of a test. The test advances the time. */
const useFakeTimers = Effect.acquireRelease(
  Effect.sync(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })),
  () => Effect.sync(() => vi.useRealTimers())
)

test("withRequestDeadline returns the outcome of reads that end before the deadline, and leaves no timer", function* () {
  yield* useFakeTimers
  for (const reads of [Effect.succeed(1), Effect.fail("no"), Effect.die("unexpected"), Effect.yieldNow]) {
    const expected: Exit.Exit<unknown, unknown> = yield* Effect.exit(reads)
    assert.deepStrictEqual(yield* Effect.exit(withRequestDeadline(reads)), expected)
  }
  assert.strictEqual(vi.getTimerCount(), 0)
})

test("withRequestDeadline fails after 5 s, even if the reads cannot be interrupted at once", function* () {
  yield* useFakeTimers
  for (const reads of [Effect.never, Effect.uninterruptible(Effect.never)]) {
    const fiber = yield* Effect.forkChild(withRequestDeadline(reads), { startImmediately: true })
    vi.advanceTimersByTime(4_999)
    assert.isUndefined(fiber.pollUnsafe())
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.fail(Unavailable))
  }
})

test("withRequestDeadline interrupts the reads after the deadline, and when its caller is interrupted", function* () {
  yield* useFakeTimers
  for (const end of [() => Effect.sync(() => vi.runAllTimers()), Fiber.interrupt]) {
    const interrupted = yield* Deferred.make<void>()
    const reads = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
    yield* end(yield* Effect.forkChild(withRequestDeadline(reads), { startImmediately: true }))
    yield* Deferred.await(interrupted)
  }
  assert.strictEqual(vi.getTimerCount(), 0)
})
