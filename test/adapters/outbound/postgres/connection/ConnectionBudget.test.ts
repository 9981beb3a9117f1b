import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import {
  defaultMaxConnections,
  divideConnections,
  minMaxConnections
} from "../../../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"

const max = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: minMaxConnections, maximum: 500 })))

it.prop(
  "divideConnections divides all but two connections, gives each pool at least one, and shrinks no pool if the maximum grows",
  { max },
  ({ max }) => {
    const pools = divideConnections(max)
    const { prompts, keys, transactions } = pools
    assert.strictEqual(prompts + keys + transactions, max - 2)
    assert.isAtLeast(Math.min(prompts, keys, transactions), 1)
    const greater = divideConnections(max + 1)
    for (const pool of ["prompts", "keys", "transactions"] as const)
      assert.isAtLeast(greater[pool], pools[pool])
  }
)

it("of the 12 connections of the default maximum, divideConnections gives 4 to prompts, 2 to keys and 4 to transactions", () => {
  assert.deepStrictEqual(divideConnections(defaultMaxConnections), { prompts: 4, keys: 2, transactions: 4 })
})
