import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { diffLines } from "../../src/pull/LineDiff.ts"

const lines = Arbitrary.array(Arbitrary.schema(Schema.Literals(["a", "b", "c", "", "-", "+", "@@"])), {
  maxLength: 30
})

/** Applies the hunks of a unified diff as `patch` does. */
const patch = (before: ReadonlyArray<string>, diff: ReadonlyArray<string>): ReadonlyArray<string> => {
  const result: Array<string> = []
  let position = 0
  for (let index = 0; index < diff.length; ) {
    const [, start, removed, , added] = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(diff[index++]!)!.map(Number)
    const from = removed === 0 ? start! : start! - 1
    result.push(...before.slice(position, from))
    position = from
    let [left, right] = [removed!, added!]
    while (left > 0 || right > 0) {
      const line = diff[index++]!
      const [kind, text] = [line[0], line.slice(1)]
      if (kind !== "+") assert.strictEqual(before[position++], text)
      if (kind !== "-") result.push(text)
      if (kind !== "+") left--
      if (kind !== "-") right--
    }
  }
  return [...result, ...before.slice(position)]
}

describe("diffLines", () => {
  it.prop(
    "a diff turns the first text into the second",
    { before: lines, after: lines },
    ({ before, after }) => {
      assert.deepStrictEqual(patch(before, diffLines(before, after)), after)
      assert.deepStrictEqual(diffLines(before, before), [])
    },
    { arbitrary: { runs: 2_000 } }
  )

  it("shows the changed lines with three lines around them", () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`)
    const after = before.with(9, "changed").toSpliced(19, 1)
    assert.deepStrictEqual(diffLines(before, after), [
      "@@ -7,7 +7,7 @@",
      " line 7",
      " line 8",
      " line 9",
      "-line 10",
      "+changed",
      " line 11",
      " line 12",
      " line 13",
      "@@ -17,4 +17,3 @@",
      " line 17",
      " line 18",
      " line 19",
      "-line 20"
    ])
  })

  it("texts with very many differences are shown as replaced", () => {
    const make = (word: string) => Array.from({ length: 5_000 }, (_, index) => `${word} ${index}`)
    const [before, after] = [make("a"), make("b")]
    assert.deepStrictEqual(patch(before, diffLines(before, after)), after)
  })
})
