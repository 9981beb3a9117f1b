import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeSingleFlight } from "../../../../src/adapters/outbound/caching/SingleFlight.ts"

describe("shared reads", () => {
  it.live("whoever reads first is interrupted, at whatever step: the next one reads", () =>
    Effect.gen(function* () {
      const slow = Effect.delay(Effect.succeed(1), "1 second")
      // A fiber makes way for others after some 2,000 steps, and may be interrupted there.
      for (let steps = 900; steps < 1100; steps++) {
        const share = makeSingleFlight<number, never>()
        let first: Effect.Effect<unknown> = Effect.void
        for (let i = 0; i < steps; i++) first = Effect.flatMap(first, () => Effect.void)
        const reader = Effect.runFork(
          Effect.andThen(
            first,
            Effect.suspend(() => share("key", 1, slow))
          )
        )
        reader.interruptUnsafe()
        assert.strictEqual(yield* share("key", 1, Effect.succeed(2)), 2, `after ${steps} steps`)
      }
    })
  )
})
