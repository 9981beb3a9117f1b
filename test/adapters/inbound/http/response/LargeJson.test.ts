import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import {
  encodeInSlices,
  hashInSlices,
  holdsLargeText
} from "../../../../../src/adapters/inbound/http/response/LargeJson.ts"

const repeatToLargeText = (unit: string): string => unit.repeat(Math.ceil(400_000 / unit.length))

describe("encoding of large texts", () => {
  for (const unit of [
    "plain text. ",
    'quoted "\\ \n\t\u0001\u001f\u007f\u2028',
    "ä",
    "x😀",
    "日本語😀",
    "\ud800x",
    "\u0000"
  ]) {
    it.effect(
      `encodeInSlices returns the bytes of JSON.stringify for a text of ${JSON.stringify(unit)}`,
      () =>
        Effect.gen(function* () {
          const text = repeatToLargeText(unit)
          const envelope = {
            data: {
              id: "1",
              current_content: text,
              left_out: undefined,
              tags: [{ name: "a" }],
              metadata: { nested: { list: [1, null, text.slice(0, 10)] } },
              title: `x${text}`,
              sort_order: -0
            }
          }
          const expected = Buffer.from(JSON.stringify(envelope))
          const body = yield* encodeInSlices(envelope)
          assert.isTrue(expected.equals(body))
          assert.strictEqual(
            yield* hashInSlices(body),
            createHash("sha256").update(expected).digest("base64url")
          )
        })
    )
  }

  it("holdsLargeText is true only for a single resource with a large text", () => {
    const large = "x".repeat(300_000)
    assert.isTrue(holdsLargeText({ data: { content: large } }))
    assert.isFalse(holdsLargeText({ data: { content: "x" } }))
    assert.isFalse(holdsLargeText({ data: [{ content: large }], meta: {} }))
  })
})
