import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { ReadGate, withDeadline } from "../../src/application/ReadGate.ts"
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

const timeout = { _tag: "Timeout" } as const
const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

test("withDeadline returns the outcome of an effect that ends before the deadline, and leaves no timer", function* () {
  const before = countTimers()
  for (const effect of [Effect.succeed(1), Effect.fail("no"), Effect.die("unexpected"), Effect.yieldNow]) {
    const expected: Exit.Exit<unknown, unknown> = yield* Effect.exit(effect)
    assert.deepStrictEqual(yield* Effect.exit(withDeadline(60_000, timeout)(effect)), expected)
  }
  assert.isAtMost(countTimers(), before)
})

test("withDeadline fails after the deadline, even if the effect cannot be interrupted at once", function* () {
  for (const effect of [Effect.never, Effect.uninterruptible(Effect.never)])
    assert.deepStrictEqual(yield* Effect.exit(withDeadline(10, timeout)(effect)), Exit.fail(timeout))
})

test("withDeadline interrupts the effect after the deadline, and when its caller is interrupted", function* () {
  const before = countTimers()
  for (const deadline of [10, 60_000]) {
    const interrupted = yield* Deferred.make<void>()
    const never = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
    const run = Effect.exit(withDeadline(deadline, timeout)(never))
    const fiber = yield* Effect.forkChild(run, { startImmediately: true })
    if (deadline > 10) yield* Fiber.interrupt(fiber)
    yield* Fiber.await(fiber)
    yield* Deferred.await(interrupted)
  }
  assert.isAtMost(countTimers(), before)
})
