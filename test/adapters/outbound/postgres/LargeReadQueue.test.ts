import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { LargeReadQueue } from "../../../../src/adapters/outbound/postgres/LargeReadQueue.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"

/** `start` queues a read that adds its name to `started` when it runs and ends when `end` runs. */
const setUp = Effect.gen(function* () {
  const queue = new LargeReadQueue()
  const started: Array<string> = []
  const start = Effect.fnUntraced(function* (name: string) {
    const gate = yield* Deferred.make<void>()
    const body = Effect.andThen(
      Effect.sync(() => void started.push(name)),
      Deferred.await(gate)
    )
    const fiber = yield* Effect.forkChild(queue.read(name.slice(0, 1), body), { startImmediately: true })
    const end = Effect.andThen(Deferred.succeed(gate, undefined), Fiber.await(fiber))
    return { fiber, end }
  })
  return { queue, started, start }
})

describe("LargeReadQueue", () => {
  it.effect("runs two reads at once, then one read of each workspace in turn", () =>
    Effect.gen(function* () {
      const { started, start } = yield* setUp
      const ends = new Map<string, Effect.Effect<unknown>>()
      for (const name of ["a1", "a2", "a3", "a4", "b1", "c1"]) ends.set(name, (yield* start(name)).end)
      assert.deepStrictEqual(started, ["a1", "a2"])
      for (const name of ["a1", "a2", "a3", "b1", "c1", "a4"]) {
        yield* ends.get(name)!
        yield* Effect.yieldNow
      }
      assert.deepStrictEqual(started, ["a1", "a2", "a3", "b1", "c1", "a4"])
    })
  )

  it.effect("a read releases its permit however it ends, and an interrupted waiting read gets none", () =>
    Effect.gen(function* () {
      const { queue, started, start } = yield* setUp
      const [first, second, third, fourth] = [
        yield* start("a1"),
        yield* start("a2"),
        yield* start("a3"),
        yield* start("b1")
      ]
      yield* Fiber.interrupt(third.fiber)
      yield* Fiber.interrupt(first.fiber)
      yield* Effect.yieldNow
      assert.deepStrictEqual(started, ["a1", "a2", "b1"])
      yield* second.end
      yield* fourth.end
      assert.strictEqual(yield* Effect.flip(queue.read("c", Effect.fail("failed"))), "failed")
      assert.strictEqual(yield* queue.read("c", Effect.succeed(1)), 1)
    })
  )

  it.effect("a read fails with Unavailable if 1,000 reads are already waiting", () =>
    Effect.gen(function* () {
      const { queue, start } = yield* setUp
      const reads = []
      for (let i = 0; i < 1_002; i++) reads.push(yield* start(`a${i}`))
      assert.strictEqual(yield* Effect.flip(queue.read("b", Effect.void)), Unavailable)
      yield* Effect.forEach(reads, ({ fiber }) => Fiber.interrupt(fiber), { discard: true })
    })
  )
})
