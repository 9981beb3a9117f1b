import { assert, it } from "@effect/vitest"
import { fitsName, sizes } from "../../src/domain/Sizes.ts"

it("a name is limited in code points, and a huge text is rejected without splitting it", () => {
  const longest = "\u{1F600}".repeat(sizes.nameLength)
  assert.deepStrictEqual([longest, `${longest}x`, "x".repeat(2 ** 28)].map(fitsName), [true, false, false])
})
