import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { makeBatchedLookup } from "../../../../src/adapters/outbound/postgres/BatchedLookup.ts"
import type { Row } from "../../../../src/adapters/outbound/postgres/Database.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"

const parity = (key: number): "even" | "odd" => (key % 2 === 0 ? "even" : "odd")

/**
 * A table of the numbers that are no multiple of 3, which answers in an order of its own; even ones and odd ones are
 * asked for apart.
 */
const setUp = Effect.fnUntraced(function* (
  answering: (group: "even" | "odd") => Effect.Effect<void, Unavailable> = () => Effect.void
) {
  const statements: Array<ReadonlyArray<number>> = []
  const read = yield* makeBatchedLookup(
    ({ params }) => {
      const asked = params as ReadonlyArray<number>
      statements.push(asked)
      const rows: ReadonlyArray<Row> = asked
        .map((key, index) => ({ n: index + 1, key }))
        .filter(({ key }) => key % 3 !== 0)
      return Effect.as(answering(parity(asked[0]!)), rows.toReversed())
    },
    (keys: ReadonlyArray<number>) => ({ text: "", params: keys }),
    parity
  )
  return { statements, read }
})

const all = <A, E>(effects: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.all(effects, { concurrency: "unbounded" })

/** What is asked for until then is asked for together. */
const turn = Effect.promise(() => setImmediate())

describe("reading in batches", () => {
  it.effect.prop(
    "gives each who asks the row of its own key, in as few statements as the bound lets",
    { keys: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 }))) },
    ({ keys }) =>
      Effect.gen(function* () {
        const { statements, read } = yield* setUp()
        const rows = yield* all(keys.map(read))
        assert.deepStrictEqual(
          rows.map((row) => row?.key),
          keys.map((key) => (key % 3 === 0 ? undefined : key))
        )
        for (const asked of statements) assert.strictEqual(new Set(asked.map(parity)).size, 1)
        const ofGroup = (group: string) => (key: number) => parity(key) === group
        for (const group of ["even", "odd"]) {
          const own = keys.filter(ofGroup(group))
          const ownStatements = statements.filter(([first]) => ofGroup(group)(first!))
          assert.deepStrictEqual(ownStatements.flat(), own)
          assert.strictEqual(ownStatements.length, Math.ceil(own.length / 16))
        }
      })
  )

  it.effect("an outage is everybody's of the group, a defect too, and nobody's of another", () =>
    Effect.gen(function* () {
      for (const failure of [Effect.fail(Unavailable), Effect.die(new Error("no such column"))]) {
        const { read } = yield* setUp((group) => (group === "odd" ? failure : Effect.void))
        const exits = yield* all([1, 2, 5].map((key) => Effect.exit(read(key))))
        const expected = yield* Effect.exit(failure)
        assert.deepStrictEqual(exits, [expected, Exit.succeed({ n: 1, key: 2 }), expected])
      }
    })
  )

  it.effect("who leaves at once is not asked for", () =>
    Effect.gen(function* () {
      const { statements, read } = yield* setUp()
      const [leaves, stays] = yield* Effect.forEach([4, 2], (key) =>
        Effect.forkChild(read(key), { startImmediately: true })
      )
      yield* Fiber.interrupt(leaves!)
      assert.deepStrictEqual(yield* Fiber.join(stays!), { n: 1, key: 2 })
      yield* Fiber.interrupt(yield* Effect.forkChild(read(4), { startImmediately: true }))
      yield* turn
      assert.deepStrictEqual(statements, [[2]])
    })
  )

  it.effect("who leaves later takes nothing from the others", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { statements, read } = yield* setUp(() => Deferred.await(gate))
      const [leaves, stays] = yield* Effect.forEach([4, 2], (key) =>
        Effect.forkChild(read(key), { startImmediately: true })
      )
      yield* turn
      assert.deepStrictEqual(statements, [[4, 2]])
      yield* Fiber.interrupt(leaves!)
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(leaves!)))
      assert.deepStrictEqual(yield* Fiber.join(stays!), { n: 2, key: 2 })
    })
  )
})
