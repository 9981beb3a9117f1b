import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../src/application/support/Lifecycle.ts"

describe("Lifecycle", () => {
  it.effect("goes from starting to serving to draining", () =>
    Effect.gen(function* () {
      const { markDraining, markServing, phase } = yield* Lifecycle
      assert.strictEqual(phase(), "starting")
      yield* markServing
      assert.strictEqual(phase(), "serving")
      yield* markDraining
      assert.strictEqual(phase(), "draining")
    }).pipe(Effect.provide(Lifecycle.starting))
  )

  it.effect("stays draining if the database becomes ready during the drain", () =>
    Effect.gen(function* () {
      const { markDraining, markServing, phase } = yield* Lifecycle
      yield* markDraining
      yield* markServing
      assert.strictEqual(phase(), "draining")
    }).pipe(Effect.provide(Lifecycle.starting))
  )

  it.effect("is serving from the start if the database is known to be ready", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Lifecycle).phase(), "serving")
    }).pipe(Effect.provide(Lifecycle.serving))
  )
})
