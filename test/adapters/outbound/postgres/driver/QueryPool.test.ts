import { setImmediate } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type { Row } from "../../../../../src/adapters/outbound/postgres/driver/Query.ts"
import { makeBatchedLookup } from "../../../../../src/adapters/outbound/postgres/driver/QueryPool.ts"
import { Unavailable } from "../../../../../src/application/ports/Unavailable.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const getParity = (key: number): "even" | "odd" => (key % 2 === 0 ? "even" : "odd")

/** Waits for the next turn of the event loop. Lookups of one turn share a batch. */
const nextTurn = Effect.promise(() => setImmediate())

/**
 * Makes a lookup in a table of all numbers except multiples of 3. The table returns rows in reverse order. Even and odd
 * numbers are separate partitions. `respond` runs before a statement of a partition returns. Like the response of a
 * database, the result arrives in a later turn of the event loop.
 */
type Respond = (partition: "even" | "odd") => Effect.Effect<void, Unavailable>
const makeLookup = (respond: Respond = () => Effect.void) => {
  const statements: Array<ReadonlyArray<number>> = []
  const lookUp = makeBatchedLookup(
    ({ params }) => {
      const keys = params as ReadonlyArray<number>
      statements.push(keys)
      const rows: ReadonlyArray<Row> = keys
        .map((key, index) => ({ ordinal: index + 1, key }))
        .filter(({ key }) => key % 3 !== 0)
      return Effect.as(Effect.andThen(nextTurn, respond(getParity(keys[0]!))), rows.toReversed())
    },
    (keys: ReadonlyArray<number>) => ({ text: "", params: keys }),
    getParity
  )
  return { statements, lookUp }
}

const tableKey = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 }))
const test = makeTest(it.effect)
it.effect.prop(
  "a batched lookup sends up to 16 keys of a partition in each statement, and returns the row of each key",
  { keys: Schema.Array(tableKey).check(Schema.isMinLength(50)) },
  Effect.fnUntraced(function* ({ keys }) {
    const { statements, lookUp } = makeLookup()
    const rows = yield* Effect.all(keys.map(lookUp), { concurrency: "unbounded" })
    const found = rows.map((row) => row?.key)
    const expected = keys.map((key) => (key % 3 === 0 ? undefined : key))
    assert.deepStrictEqual(found, expected)
    for (const partition of ["even", "odd"]) {
      const isOwn = (key: number) => getParity(key) === partition
      const sent = statements.filter(([key]) => isOwn(key!))
      assert.deepStrictEqual(sent, Arr.chunksOf(keys.filter(isOwn), 16))
    }
  })
)

test("if a statement fails or dies, only the lookups of its keys fail or die, and lookups in another partition succeed", function* () {
  for (const failure of [Effect.fail(Unavailable), Effect.die(new Error("no such column"))]) {
    const { lookUp } = makeLookup((partition) => (partition === "odd" ? failure : Effect.void))
    const exits = yield* Effect.forEach([1, 2, 5], (key) => Effect.exit(lookUp(key)), { concurrency: 3 })
    const expected = yield* Effect.exit(failure)
    assert.deepStrictEqual(exits, [expected, Exit.succeed({ ordinal: 1, key: 2 }), expected])
  }
})

test("a batched lookup does not send the key of an interrupted caller, and interrupts a statement when no caller waits for its rows any more", function* () {
  const gate = yield* Deferred.make<void>()
  const log: Array<string> = []
  const { statements, lookUp } = makeLookup((partition) =>
    Effect.onInterrupt(Deferred.await(gate), () => Effect.sync(() => log.push(partition)))
  )
  const [waiting, sent, other, lone, last] = yield* Effect.forEach([10, 4, 2, 1, 5], (key) =>
    Effect.forkChild(lookUp(key), { startImmediately: true })
  )
  yield* Fiber.interruptAll([waiting!, last!])
  yield* nextTurn
  assert.deepStrictEqual(statements, [[4, 2], [1]])
  yield* nextTurn
  yield* Fiber.interruptAll([sent!, lone!])
  assert.deepStrictEqual(log, ["odd"])
  yield* Deferred.succeed(gate, undefined)
  assert.deepStrictEqual(yield* Fiber.join(other!), { ordinal: 2, key: 2 })
})
