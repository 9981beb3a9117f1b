import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { withDeadline } from "../../../../../src/adapters/inbound/http/request/Deadline.ts"

const late = { _tag: "Late" } as const
const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

describe("within a deadline", () => {
  it.effect("gives what the effect gives in time, and leaves no timer", () =>
    Effect.gen(function* () {
      const before = timers()
      const defect = new Error("unexpected")
      for (const effect of [Effect.succeed(1), Effect.fail("no"), Effect.die(defect), Effect.yieldNow]) {
        const expected: Exit.Exit<unknown, unknown> = yield* Effect.exit(effect)
        assert.deepStrictEqual(yield* Effect.exit(withDeadline(60_000, late)(effect)), expected)
      }
      assert.strictEqual(timers(), before)
    })
  )

  it.effect("fails when it is late, and interrupts the effect", () =>
    Effect.gen(function* () {
      const interrupted = yield* Deferred.make<void>()
      const never = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
      assert.deepStrictEqual(yield* Effect.exit(withDeadline(10, late)(never)), Exit.fail(late))
      yield* Deferred.await(interrupted)
    })
  )

  it.effect("does not wait for an effect that won't be interrupted", () =>
    Effect.gen(function* () {
      const stubborn = Effect.uninterruptible(Effect.promise(() => new Promise<void>(() => {})))
      assert.deepStrictEqual(yield* Effect.exit(withDeadline(10, late)(stubborn)), Exit.fail(late))
    })
  )

  it.effect("interrupts the effect of who no longer waits, and leaves no timer", () =>
    Effect.gen(function* () {
      const before = timers()
      const interrupted = yield* Deferred.make<void>()
      const never = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
      const fiber = yield* Effect.forkChild(withDeadline(60_000, late)(never), { startImmediately: true })
      assert.isAbove(timers(), before)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      yield* Deferred.await(interrupted)
      assert.strictEqual(timers(), before)
    })
  )
})
