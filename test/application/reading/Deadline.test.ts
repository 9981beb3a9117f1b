import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { withDeadline } from "../../../src/application/reading/ReadGate.ts"

const timeout = { _tag: "Timeout" } as const
const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

describe("withDeadline", () => {
  it.effect(
    "withDeadline returns the outcome of an effect that ends before the deadline, and leaves no timer",
    () =>
      Effect.gen(function* () {
        const before = countTimers()
        const defect = new Error("unexpected")
        for (const effect of [Effect.succeed(1), Effect.fail("no"), Effect.die(defect), Effect.yieldNow]) {
          const expected: Exit.Exit<unknown, unknown> = yield* Effect.exit(effect)
          assert.deepStrictEqual(yield* Effect.exit(withDeadline(60_000, timeout)(effect)), expected)
        }
        assert.isAtMost(countTimers(), before)
      })
  )

  it.effect("withDeadline fails after the deadline, even if the effect cannot be interrupted at once", () =>
    Effect.gen(function* () {
      const interrupted = yield* Deferred.make<void>()
      const never = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
      for (const effect of [never, Effect.uninterruptible(Effect.never)])
        assert.deepStrictEqual(yield* Effect.exit(withDeadline(10, timeout)(effect)), Exit.fail(timeout))
      yield* Deferred.await(interrupted)
    })
  )

  it.effect("withDeadline interrupts the effect when its caller is interrupted, and leaves no timer", () =>
    Effect.gen(function* () {
      const before = countTimers()
      const interrupted = yield* Deferred.make<void>()
      const never = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
      const fiber = yield* Effect.forkChild(withDeadline(60_000, timeout)(never), { startImmediately: true })
      assert.isAbove(countTimers(), before)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      yield* Deferred.await(interrupted)
      assert.isAtMost(countTimers(), before)
    })
  )
})
