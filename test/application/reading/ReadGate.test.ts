import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { countUnits, ReadGate } from "../../../src/application/reading/ReadGate.ts"
import { workspace } from "../../support/archives.ts"

const largeUnits = 1024 * 1024

describe("reads of a workspace", () => {
  it.effect("at most as many reads of a workspace run at the same time as it has permits", () =>
    Effect.gen(function* () {
      const workspaces = [workspace().id, workspace().id]
      const { withPermit } = yield* ReadGate
      const end = Latch.makeUnsafe()
      const running = [0, 0]
      const reads = workspaces.flatMap((id, index) =>
        Array.from({ length: 20 }, () =>
          withPermit(
            id,
            Effect.andThen(
              Effect.sync(() => running[index]!++),
              end.await
            )
          )
        )
      )
      const all = yield* Effect.forkChild(Effect.all(reads, { concurrency: "unbounded" }))
      yield* Effect.yieldNow
      assert.deepStrictEqual(running, [12, 12])
      end.openUnsafe()
      yield* Fiber.join(all)
      assert.deepStrictEqual(running, [20, 20])
    }).pipe(Effect.provide(ReadGate.layer))
  )
})

describe("steps of reads", () => {
  it.live("other work runs between two large steps, and small steps do not wait for large steps", () =>
    Effect.gen(function* () {
      const { run } = yield* ReadGate
      const order: Array<string> = []
      const add = (name: string) => () => void order.push(name)
      const large = run(largeUnits, () => {
        order.push("large")
        setImmediate(add("other"))
      })
      yield* Effect.all([large, large, run(1, add("small"))], { concurrency: "unbounded" })
      assert.deepStrictEqual(order, ["small", "large", "other", "large"])
    }).pipe(Effect.provide(ReadGate.layer))
  )

  it("the size of a value is the length of its texts, and 8 for each other scalar", () => {
    assert.strictEqual(countUnits({ title: "abc", tags: [{ name: "de" }, null], count: 1 }), 3 + 2 + 8 + 8)
  })
})
