import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { makeBatchedLookup } from "../../../../src/adapters/outbound/postgres/BatchedLookup.ts"
import type { Row } from "../../../../src/adapters/outbound/postgres/connection/Query.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"

const getParity = (key: number): "even" | "odd" => (key % 2 === 0 ? "even" : "odd")

/**
 * A lookup in a table of all numbers except multiples of 3. The table returns rows in reverse order; even and odd numbers
 * are separate partitions. `respond` runs before a statement of a partition returns.
 */
const makeLookup = Effect.fnUntraced(function* (
  respond: (partition: "even" | "odd") => Effect.Effect<void, Unavailable> = () => Effect.void
) {
  const statements: Array<ReadonlyArray<number>> = []
  const lookUp = yield* makeBatchedLookup(
    ({ params }) => {
      const keys = params as ReadonlyArray<number>
      statements.push(keys)
      const rows: ReadonlyArray<Row> = keys
        .map((key, index) => ({ ordinal: index + 1, key }))
        .filter(({ key }) => key % 3 !== 0)
      return Effect.as(respond(getParity(keys[0]!)), rows.toReversed())
    },
    (keys: ReadonlyArray<number>) => ({ text: "", params: keys }),
    getParity
  )
  return { statements, lookUp }
})

const runAll = <A, E>(effects: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.all(effects, { concurrency: "unbounded" })

/** Waits for the next turn of the event loop, before which all lookups share a batch. */
const nextTurn = Effect.promise(() => setImmediate())

describe("a batched lookup", () => {
  it.effect.prop(
    "returns the row of each key, with at most 16 keys of one partition per statement",
    { keys: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 }))) },
    ({ keys }) =>
      Effect.gen(function* () {
        const { statements, lookUp } = yield* makeLookup()
        const rows = yield* runAll(keys.map(lookUp))
        assert.deepStrictEqual(
          rows.map((row) => row?.key),
          keys.map((key) => (key % 3 === 0 ? undefined : key))
        )
        for (const sent of statements) assert.strictEqual(new Set(sent.map(getParity)).size, 1)
        for (const partition of ["even", "odd"]) {
          const isInPartition = (key: number) => getParity(key) === partition
          const keysOfPartition = keys.filter(isInPartition)
          const sent = statements.filter(([first]) => isInPartition(first!))
          assert.deepStrictEqual(sent.flat(), keysOfPartition)
          assert.strictEqual(sent.length, Math.ceil(keysOfPartition.length / 16))
        }
      })
  )

  it.effect(
    "fails or dies for every key of the statement that does, and for no key of another partition",
    () =>
      Effect.gen(function* () {
        for (const failure of [Effect.fail(Unavailable), Effect.die(new Error("no such column"))]) {
          const { lookUp } = yield* makeLookup((partition) => (partition === "odd" ? failure : Effect.void))
          const exits = yield* runAll([1, 2, 5].map((key) => Effect.exit(lookUp(key))))
          const expected = yield* Effect.exit(failure)
          assert.deepStrictEqual(exits, [expected, Exit.succeed({ ordinal: 1, key: 2 }), expected])
        }
      })
  )

  it.effect("does not send a key whose caller was interrupted before the statement was sent", () =>
    Effect.gen(function* () {
      const { statements, lookUp } = yield* makeLookup()
      const [interrupted, other] = yield* Effect.forEach([4, 2], (key) =>
        Effect.forkChild(lookUp(key), { startImmediately: true })
      )
      yield* Fiber.interrupt(interrupted!)
      assert.deepStrictEqual(yield* Fiber.join(other!), { ordinal: 1, key: 2 })
      yield* Fiber.interrupt(yield* Effect.forkChild(lookUp(4), { startImmediately: true }))
      yield* nextTurn
      assert.deepStrictEqual(statements, [[2]])
    })
  )

  it.effect("returns the other rows when a caller is interrupted after the statement was sent", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { statements, lookUp } = yield* makeLookup(() => Deferred.await(gate))
      const [interrupted, other] = yield* Effect.forEach([4, 2], (key) =>
        Effect.forkChild(lookUp(key), { startImmediately: true })
      )
      yield* nextTurn
      assert.deepStrictEqual(statements, [[4, 2]])
      yield* Fiber.interrupt(interrupted!)
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(interrupted!)))
      assert.deepStrictEqual(yield* Fiber.join(other!), { ordinal: 2, key: 2 })
    })
  )
})
