import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import {
  defaultMaxConnections,
  divideConnections,
  minMaxConnections
} from "../../../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"

const max = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: minMaxConnections, maximum: 500 })))

describe("divideConnections", () => {
  it.prop(
    "divideConnections uses all connections, at least one per purpose, and a greater maximum never gives a purpose fewer connections",
    { max },
    ({ max }) => {
      const { prompts, keys, transactions, changeFeed } = divideConnections(max)
      assert.strictEqual(prompts + keys + transactions + changeFeed, max)
      assert.isAtLeast(Math.min(prompts, keys, transactions), 1)
      assert.strictEqual(changeFeed, 2)
      const greater = divideConnections(max + 1)
      for (const part of ["prompts", "keys", "transactions"] as const)
        assert.isAtLeast(greater[part], { prompts, keys, transactions }[part])
    }
  )

  it("divideConnections divides the default maximum as docs/limits.md says", () => {
    assert.deepStrictEqual(divideConnections(defaultMaxConnections), {
      prompts: 4,
      keys: 2,
      transactions: 4,
      changeFeed: 2
    })
  })
})
