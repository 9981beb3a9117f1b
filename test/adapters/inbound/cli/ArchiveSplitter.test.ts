import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ArchiveSplitter } from "../../../../src/adapters/inbound/cli/ArchiveSplitter.ts"
import { isExactNumber } from "../../../../src/domain/Json.ts"
import { archives, sample } from "../../../support/archives.ts"

/** Splits a text that arrives in pieces of some lengths. */
const split = (
  text: string,
  lengths: ReadonlyArray<number> = [text.length],
  maxValueLength = text.length
) => {
  const splitter = new ArchiveSplitter(maxValueLength)
  const parts = []
  let at = 0
  for (const length of lengths) {
    parts.push(...splitter.write(text.slice(at, at + length)))
    at += length
  }
  parts.push(...splitter.write(text.slice(at)), ...splitter.end())
  return parts
}

const lengths = Arbitrary.array(Arbitrary.schema(Schema.Natural), { maxLength: 8 })

describe("ArchiveSplitter", () => {
  it.effect.prop(
    "returns the same parts wherever the text is cut",
    { archive: archives, lengths },
    Effect.fnUntraced(function* ({ archive, lengths }) {
      const text = yield* Effect.sync(() => JSON.stringify(archive, null, 2))
      const pieces = lengths.map((length) => length % text.length)
      assert.deepStrictEqual(split(text, pieces), split(text))
      const first = text.slice(0, 400)
      assert.deepStrictEqual(
        split(
          text,
          Array.from(first, () => 1)
        ),
        split(text)
      )
    })
  )

  it("keeps the digits of numbers, and text that looks like numbers", () => {
    const text =
      '{"a":[1.0,12345678901234567890,1e2,-7,0,true,null,"1.0 \\" 1e5"],"tags":[{"b":1.50}, {"b" : 15}]}'
    const write = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value), (_, member, { source }: { source?: string } = {}) =>
        typeof member === "number" ? `number ${source}` : member
      )
    const parts = split(text)
    assert.deepStrictEqual(
      parts.map(({ path, value }) => [path, write(value)]),
      [
        [
          ["a"],
          [
            "number 1.0",
            "number 12345678901234567890",
            "number 100",
            "number -7",
            "number 0",
            true,
            null,
            '1.0 " 1e5'
          ]
        ],
        [["tags", 0], { b: "number 1.50" }],
        [["tags", 1], { b: "number 15" }],
        [["tags"], []],
        [[], {}]
      ]
    )
    assert.isTrue(isExactNumber((parts[1]!.value as { b: unknown }).b))
    assert.strictEqual((parts[2]!.value as { b: unknown }).b, 15)
  })

  const text = JSON.stringify(sample().archive)

  it.each([
    ["an empty text", ""],
    ["a text that ends early", text.slice(0, -1)],
    ["a number that may go on", "1"],
    ["a list as the root", "[]"],
    ["text after the root", `${text}{}`],
    ["a comma before the end of the root", '{"users":[],}'],
    ["a comma before the end of a list", '{"users":[1,]}'],
    ["a list without commas", '{"users":[{}{}]}'],
    ["a list that begins with a comma", '{"users":[,1]}'],
    ["a member without a name", "{:1}"],
    ["a member without a colon", '{"a" 1}'],
    ["a member without a value", '{"a":,"b":1}'],
    ["a value that ends with another bracket", '{"a":[1}}'],
    ["a value with too many brackets", '{"a":[1]]}'],
    ["a name that is not a string", "{1:1}"],
    ["a line break in a string", '{"a":"\n"}'],
    ["a word that is no literal", '{"a":nil}'],
    ...["\f", "\v", "\u00a0", "\u2028", "\u3000", "\ufeff"].map((character) => [
      `the character ${JSON.stringify(character)} between tokens of a value`,
      `{"prompts":[{"id":${character}"x"}]}`
    ])
  ])("throws for %s", (_, text) => {
    assert.throws(() => split(text, []), SyntaxError)
  })

  it("throws for a value that is longer than the maximum, and only for such a value", () => {
    const write = (length: number) => `{"a":"${"x".repeat(98)}","b":"${"x".repeat(length)}"}`
    const splitCharacters = (text: string) =>
      split(
        text,
        Array.from(text, () => 1),
        100
      )
    assert.strictEqual(splitCharacters(write(98)).length, 3)
    assert.throws(() => splitCharacters(write(500)), SyntaxError)
  })
})
