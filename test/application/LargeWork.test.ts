import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { LargeWork } from "../../src/application/LargeWork.ts"
import { Unavailable } from "../../src/application/Unavailable.ts"

/** Work that has begun is in `begun`, in its order, and ends when its gate opens. */
const setUp = Effect.gen(function* () {
  const work = new LargeWork()
  const begun: Array<string> = []
  const begin = Effect.fnUntraced(function* (name: string, kind: "read" | "encode") {
    const gate = yield* Deferred.make<void>()
    const body = Effect.andThen(
      Effect.sync(() => void begun.push(name)),
      Deferred.await(gate)
    )
    const fiber = yield* Effect.forkChild(
      kind === "read" ? work.read(name.slice(0, 1), body) : work.encode(body),
      { startImmediately: true }
    )
    const end = Effect.andThen(Deferred.succeed(gate, undefined), Fiber.await(fiber))
    return { fiber, end }
  })
  return { work, begun, begin }
})

describe("work on large values", () => {
  it.effect("runs two at once: encoding first, then one read of each workspace in turn", () =>
    Effect.gen(function* () {
      const { begun, begin } = yield* setUp
      const ends = new Map<string, Effect.Effect<unknown>>()
      for (const name of ["a1", "a2", "a3", "a4", "b1", "c1"])
        ends.set(name, (yield* begin(name, "read")).end)
      ends.set("encoding", (yield* begin("encoding", "encode")).end)
      assert.deepStrictEqual(begun, ["a1", "a2"])
      for (const name of ["a1", "encoding", "a2", "a3", "b1", "c1", "a4"]) {
        yield* ends.get(name)!
        yield* Effect.yieldNow
      }
      assert.deepStrictEqual(begun, ["a1", "a2", "encoding", "a3", "b1", "c1", "a4"])
    })
  )

  it.effect(
    "gives a slot back however work ends, and none to a read that was interrupted while it waited",
    () =>
      Effect.gen(function* () {
        const { work, begun, begin } = yield* setUp
        const [first, second, third, fourth] = [
          yield* begin("a1", "read"),
          yield* begin("a2", "read"),
          yield* begin("a3", "read"),
          yield* begin("b1", "read")
        ]
        yield* Fiber.interrupt(third.fiber)
        yield* Fiber.interrupt(first.fiber)
        yield* Effect.yieldNow
        assert.deepStrictEqual(begun, ["a1", "a2", "b1"])
        yield* second.end
        yield* fourth.end
        assert.strictEqual(yield* Effect.flip(work.read("c", Effect.fail("failed"))), "failed")
        assert.strictEqual(yield* work.read("c", Effect.succeed(1)), 1)
      })
  )

  it.effect("lets at most 1,000 reads wait", () =>
    Effect.gen(function* () {
      const { work, begin } = yield* setUp
      const reads = []
      for (let i = 0; i < 1_002; i++) reads.push(yield* begin(`a${i}`, "read"))
      assert.strictEqual(yield* Effect.flip(work.read("b", Effect.void)), Unavailable)
      yield* Effect.forEach(reads, ({ fiber }) => Fiber.interrupt(fiber), { discard: true })
    })
  )
})
