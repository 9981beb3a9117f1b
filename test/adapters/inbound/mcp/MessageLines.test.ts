import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { splitLines, tooLongLine } from "../../../../src/adapters/inbound/mcp/MessageLines.ts"

const split = async (chunks: ReadonlyArray<string>, maxBytes = 1_000): Promise<ReadonlyArray<string>> => {
  const lines: Array<string> = []
  const input = (async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk)
  })()
  for await (const line of splitLines(input, maxBytes))
    lines.push(line === tooLongLine ? "too long" : Buffer.from(line).toString())
  return lines
}

it.effect.prop(
  "splitLines returns the lines that are not blank, wherever the chunks end",
  { chunks: Schema.Array(Schema.Literals(["a", "bc", "\n", "d\ne", "\n\n", " \r", ""])) },
  ({ chunks }) =>
    Effect.promise(async () => {
      const expected = chunks
        .join("")
        .split("\n")
        .filter((line) => line.trim() !== "")
      assert.deepStrictEqual(await split(chunks), expected)
    })
)

it("splitLines replaces a line that is too long, and goes on after it", async () => {
  assert.deepStrictEqual(await split(["12", "34\n", "123\n12345\n", "12345678"], 4), [
    "1234",
    "123",
    "too long",
    "too long"
  ])
})
