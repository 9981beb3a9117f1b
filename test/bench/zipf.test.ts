import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { makeSampler, makeZipfShares } from "../../bench/scaling/zipf.ts"
import { makeRandom } from "../support/random.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_000 }))
const Exponent = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 }))
const Uniform = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 32 - 1 }))

const assertClose = (actual: number, expected: number, tolerance: number) =>
  assert.isAtMost(Math.abs(actual - expected), tolerance * expected, `${actual} is not near ${expected}`)

describe("makeZipfShares", () => {
  it.prop(
    "returns shares that add up to 1 and follow Zipf's law",
    { count: Count, tenths: Exponent },
    ({ count, tenths }) => {
      const exponent = tenths / 10
      const shares = makeZipfShares(count, exponent)
      assert.strictEqual(shares.length, count)
      assertClose(
        shares.reduce((sum, share) => sum + share, 0),
        1,
        1e-9
      )
      for (const [index, share] of shares.entries())
        assertClose(shares[0]! / share, (index + 1) ** exponent, 1e-9)
    }
  )
})

describe("makeSampler", () => {
  it.prop(
    "draws the index in whose part of the cumulative distribution the number lies",
    { count: Count, tenths: Exponent, integer: Uniform },
    ({ count, tenths, integer }) => {
      const shares = makeZipfShares(count, tenths / 10)
      const uniform = integer / 2 ** 32
      const index = makeSampler(shares, () => uniform)()
      const before = shares.slice(0, index).reduce((sum, share) => sum + share, 0)
      assert.isAtMost(before, uniform)
      assert.isTrue(uniform < before + shares[index]! || index === count - 1)
    }
  )

  it.prop("draws the same indices from the same seed", { count: Count, seed: Uniform }, ({ count, seed }) => {
    const draw = () => {
      const random = makeRandom(seed)
      const sample = makeSampler(makeZipfShares(count, 1), random.uniform)
      return Array.from({ length: 100 }, sample)
    }
    assert.deepStrictEqual(draw(), draw())
  })

  it("draws every index as often as its share says", () => {
    const shares = makeZipfShares(50, 1)
    const sample = makeSampler(shares, makeRandom(1).uniform)
    const draws = 200_000
    const counts = new Float64Array(shares.length)
    for (let i = 0; i < draws; i++) counts[sample()]!++
    for (const [index, share] of shares.entries()) {
      const deviation = Math.sqrt(draws * share * (1 - share))
      assert.isAtMost(Math.abs(counts[index]! - draws * share), 5 * deviation, `index ${index}`)
    }
  })
})
