import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { parseVersionNumber } from "../../src/domain/Version.ts"

const numeric = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals([..."0123456789", "e", ".", "+", "-", " ", "１"])), {
    maxLength: 12
  }),
  (chars) => chars.join("")
)

describe("parseVersionNumber", () => {
  it.prop(
    "parseVersionNumber parses the decimal digits of the integers from 1 to 2^31-1 and nothing else",
    { text: numeric },
    ({ text }) => {
      const isWhole = text !== "" && [...text].every((char) => "0123456789".includes(char))
      const value = isWhole ? BigInt(text) : 0n
      const isNumber = String(value) === text && value >= 1n && value < 2n ** 31n
      assert.strictEqual(parseVersionNumber(text), isNumber ? Number(value) : undefined)
    },
    { arbitrary: { runs: 2000 } }
  )

  it("parseVersionNumber accepts 1 and 2^31-1 and rejects 0 and 2^31", () => {
    assert.strictEqual(parseVersionNumber("1"), 1)
    assert.strictEqual(parseVersionNumber("2147483647"), 2147483647)
    for (const text of ["0", "01", "2147483648", "10000000000", "18446744073709551617", "1\n"]) {
      assert.strictEqual(parseVersionNumber(text), undefined, JSON.stringify(text))
    }
  })
})
