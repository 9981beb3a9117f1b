import * as PgTypes from "@effect/sql-pg/PgTypes"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { TextArrayWriter } from "../../../../src/adapters/outbound/postgres/content/TextArrayWriter.ts"

const encode = (texts: ReadonlyArray<string | null>): Uint8Array =>
  Result.getOrThrow(PgTypes.encode(texts, PgTypes.OID.textArray))

const write = (writer: TextArrayWriter, texts: ReadonlyArray<string | null>): Uint8Array => {
  for (const text of texts) writer.add(text)
  return Uint8Array.from(writer.read())
}

const NonEmptyTexts = Schema.NonEmptyArray(Schema.NullOr(Schema.String))

describe("TextArrayWriter", () => {
  it.effect.prop(
    "writes the bytes that the driver writes for the same texts",
    { texts: NonEmptyTexts },
    ({ texts }) =>
      Effect.sync(() => assert.deepStrictEqual(write(new TextArrayWriter(), texts), encode(texts)))
  )

  it("writes texts that are longer than its memory, in characters of 1 to 4 bytes", () => {
    const texts = ["x".repeat(5_000), null, "ä€😀".repeat(3_000), "", "é".repeat(4_096), "\u0001"]
    assert.deepStrictEqual(write(new TextArrayWriter(), texts), encode(texts))
  })

  it("returns the number of bytes of each element", () => {
    const writer = new TextArrayWriter()
    const empty = writer.read().length
    const texts = ["ä", null, "", "x".repeat(10_000)]
    const bytes = texts.map((text) => writer.add(text))
    assert.deepStrictEqual(bytes, [6, 4, 4, 10_004])
    assert.strictEqual(writer.read().length, empty + 10_018)
  })

  it("writes another array after it was cleared, without the elements and nulls of the first", () => {
    const writer = new TextArrayWriter()
    write(writer, ["first", null, "x".repeat(10_000)])
    writer.clear()
    assert.deepStrictEqual(write(writer, ["second"]), encode(["second"]))
  })
})
