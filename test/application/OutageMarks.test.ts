import { assert, describe, it } from "@effect/vitest"
import { OutageMarks } from "../../src/application/OutageMarks.ts"

describe("OutageMarks", () => {
  it("forgets only what was last marked before a time", () => {
    const marks = new OutageMarks()
    for (const [name, time] of [
      ["a", 1],
      ["b", 2],
      ["a", 3]
    ] as const)
      marks.add(name, time)
    marks.deleteBefore(2)
    assert.deepStrictEqual(
      ["a", "b", "c"].map((name) => marks.has(name)),
      [true, true, false]
    )
    marks.deleteBefore(3)
    assert.deepStrictEqual(
      ["a", "b", "c"].map((name) => marks.has(name)),
      [true, false, false]
    )
  })

  it("above 10,000 marks, everything counts as marked until the mark that did not fit is forgotten", () => {
    const marks = new OutageMarks()
    for (let i = 0; i < 10_000; i++) marks.add(String(i), 1)
    marks.add("0", 1)
    assert.isFalse(marks.has("other"))
    marks.add("one more", 2)
    assert.isTrue(marks.has("other"))
    marks.deleteBefore(2)
    assert.isTrue(marks.has("other"))
    marks.deleteBefore(3)
    assert.deepStrictEqual(
      ["0", "one more", "other"].map((name) => marks.has(name)),
      [false, false, false]
    )
  })
})
