import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import {
  defaultMaxConnections,
  divideConnections,
  divideWithReplicas,
  findDefaultMaxConnections,
  findMinMaxConnections,
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

describe("divideWithReplicas", () => {
  it("divideWithReplicas uses all connections, at least one per purpose, and a greater maximum never gives a purpose fewer connections", () => {
    for (const replicas of [1, 2, 5]) {
      for (let max = findMinMaxConnections(replicas); max < 200; max++) {
        const { primary, prompts, keys } = divideWithReplicas(max, replicas)
        assert.strictEqual(primary + prompts + keys + replicas, max)
        assert.isAtLeast(primary, minMaxConnections)
        assert.isAtLeast(Math.min(prompts, keys), 1)
        const greater = divideWithReplicas(max + 1, replicas)
        assert.isTrue(greater.primary >= primary && greater.prompts >= prompts && greater.keys >= keys)
      }
    }
  })

  it("divideWithReplicas divides the default maximum as docs/limits.md says", () => {
    assert.deepStrictEqual(divideWithReplicas(findDefaultMaxConnections(2), 2), {
      primary: defaultMaxConnections,
      prompts: 3,
      keys: 2
    })
    assert.deepStrictEqual(
      [
        findDefaultMaxConnections(0),
        findDefaultMaxConnections(1),
        findMinMaxConnections(0),
        findMinMaxConnections(1)
      ],
      [12, 18, 6, 9]
    )
  })
})
