import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { encodeBody } from "../../../../src/adapters/inbound/http/HttpMessage.ts"

it.prop(
  "encodeBody returns UTF-8 of at most 16 KiB as a string with one character per byte, and longer UTF-8 as a buffer",
  [Schema.String, Schema.Literals([0, 16_000, 16_384, 20_000])],
  ([text, padding]) => {
    const wellFormed = text.toWellFormed() + "x".repeat(padding)
    const body = encodeBody(wellFormed)
    const bytes = Buffer.from(wellFormed)
    assert.strictEqual(typeof body === "string", bytes.length <= 16 * 1024)
    assert.deepStrictEqual(typeof body === "string" ? Buffer.from(body, "latin1") : body, bytes)
  }
)
