import { assert, describe, it } from "@effect/vitest"
import {
  defaultMaxConnections,
  minMaxConnections
} from "../../../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"
import {
  divideWithReplicas,
  findDefaultMaxConnections,
  findMinMaxConnections
} from "../../../../../src/adapters/outbound/postgres/replica/ReplicaBudget.ts"

describe("divideWithReplicas", () => {
  it("uses every connection, gives each purpose at least one, and never less for a greater maximum", () => {
    for (const replicas of [1, 2, 5]) {
      for (let max = findMinMaxConnections(replicas); max < 200; max++) {
        const { primary, prompts, keys, positions } = divideWithReplicas(max, replicas)
        assert.strictEqual(primary + prompts + keys + positions, max)
        assert.isAtLeast(primary, minMaxConnections)
        assert.isAtLeast(Math.min(prompts, keys), 1)
        assert.strictEqual(positions, replicas)
        const greater = divideWithReplicas(max + 1, replicas)
        assert.isTrue(greater.primary >= primary && greater.prompts >= prompts && greater.keys >= keys)
      }
    }
  })

  it("divides the default as docs/limits.md says", () => {
    assert.deepStrictEqual(divideWithReplicas(findDefaultMaxConnections(2), 2), {
      primary: defaultMaxConnections,
      prompts: 3,
      keys: 2,
      positions: 2
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
