import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { ReadScheduler } from "../../../src/application/reading/ReadScheduler.ts"
import { workspace } from "../../support/archives.ts"

const largeUnits = 1024 * 1024

/** Starts 100 reads after reads of the given sizes have ended. Returns how many of the 100 run at the same time. */
const countAtOnce = (sizesBefore: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const { id } = workspace()
    const { takeTurn, withPermit } = yield* ReadScheduler
    const end = Latch.makeUnsafe()
    let running = 0
    for (const units of sizesBefore) yield* withPermit(id, takeTurn(id, units))
    const read = withPermit(
      id,
      Effect.andThen(
        Effect.sync(() => running++),
        end.await
      )
    )
    const reads = yield* Effect.forkChild(
      Effect.all(
        Array.from({ length: 100 }, () => read),
        { concurrency: "unbounded" }
      )
    )
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
    const atOnce = running
    end.openUnsafe()
    yield* Fiber.join(reads)
    return atOnce
  }).pipe(Effect.provide(ReadScheduler.layer))

describe("reads of a workspace", () => {
  it.live("at first, at most 4 reads of a workspace run at the same time", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* countAtOnce([]), 4)
    })
  )

  it.live(
    "each small read raises the maximum number of concurrent reads of its workspace by one, up to 32",
    () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* countAtOnce([1, 1, 1]), 7)
        assert.strictEqual(yield* countAtOnce(Array.from({ length: 100 }, () => 1)), 32)
      })
  )

  it.live("after a large read, at most 4 reads of the workspace run at the same time", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* countAtOnce([1, 1, 1, largeUnits]), 4)
    })
  )
})
