import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidParameter, makePage, parsePositiveInt, positiveIntRule } from "../../src/domain/Page.ts"
import { parseVersionNumber } from "../../src/domain/Version.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))
/** Texts of digits and of other characters that some number parsers accept. */
const numeric = Arbitrary.map(
  Arbitrary.array(
    Arbitrary.schema(Schema.Literals([..."0123456789", "e", ".", "+", "-", " ", "\n", "_", "x", "１", "٣"])),
    { maxLength: 18 }
  ),
  (chars) => chars.join("")
)

describe.each([
  { name: "parsePositiveInt", parse: parsePositiveInt, limit: "2^53-1", max: 2n ** 53n - 1n },
  { name: "parseVersionNumber", parse: parseVersionNumber, limit: "2^31-1", max: 2n ** 31n - 1n }
])("$name", ({ name, parse, limit, max }) => {
  it.prop(
    `${name} parses the decimal digits of the integers from 1 to ${limit}, and no other text`,
    { text: numeric },
    ({ text }) => {
      const isWhole = text !== "" && [...text].every((char) => "0123456789".includes(char))
      const value = isWhole ? BigInt(text) : 0n
      const isAccepted = String(value) === text && value >= 1n && value <= max
      assert.strictEqual(parse(text), isAccepted ? Number(value) : undefined)
    },
    { arbitrary: { runs: 2000 } }
  )

  it(`${name} accepts 1 and ${limit}, and rejects ${limit} + 1`, () => {
    for (const value of [1n, max]) assert.strictEqual(parse(String(value)), Number(value))
    assert.isUndefined(parse(String(max + 1n)))
  })
})

it.prop(
  "makePage accepts the integers from 1 to 2^53-1, reduces per_page to at most 100, and defaults to page 1 with 20 items",
  { page: Schema.Union([Count, Schema.Number]), per_page: Schema.Union([Count, Schema.Number]) },
  ({ page, per_page }) => {
    const wrong = Object.entries({ page, per_page }).find(
      ([, value]) => !Number.isSafeInteger(value) || value < 1
    )
    assert.deepStrictEqual(
      makePage({ page, per_page }),
      wrong === undefined
        ? Result.succeed({ page, per_page: Math.min(per_page, 100) })
        : Result.fail(InvalidParameter(`${wrong[0]} ${positiveIntRule}`))
    )
    assert.deepStrictEqual(makePage({}), Result.succeed({ page: 1, per_page: 20 }))
  }
)
