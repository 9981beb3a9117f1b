import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { ResolvedPrompt } from "../../src/domain/Prompt.ts"
import { fillSlots, ResolvedTooLarge, resolve, type SourceFragment } from "../../src/domain/Resolution.ts"
import { sizes } from "../../src/domain/Sizes.ts"
import { prompt } from "../support/archives.ts"
import { overrides, text } from "../support/generatedTexts.ts"

const makeSource = (current_content: string, fragments: ReadonlyArray<SourceFragment>) => ({
  ...prompt({ current_content }),
  fragments
})

// The model of `resolve` reads character by character, without regular expressions. Unlike `resolve`, the model can
// take more than linear time.

const isSlotName = (name: string): boolean =>
  name.length <= 256 && !name.includes("{") && !name.includes("}") && name.trim() !== ""

const findBoundText = (overrides: unknown, name: string): string | undefined => {
  if (typeof overrides !== "object" || overrides === null || Array.isArray(overrides)) return undefined
  const value = new Map<string, unknown>(Object.entries(overrides)).get(name)
  return ["string", "number", "boolean"].includes(typeof value) ? `${value}` : undefined
}

const fillByModel = (content: string, overrides: unknown): string => {
  let out = ""
  let at = 0
  while (at < content.length) {
    const close = content.startsWith("{{", at) ? content.indexOf("}}", at + 2) : -1
    const name = content.slice(at + 2, close)
    const value = close !== -1 && isSlotName(name) ? findBoundText(overrides, name.trim()) : undefined
    out += value ?? content.charAt(at)
    at = value === undefined ? at + 1 : close + 2
  }
  return out
}

/** Overrides of any JSON type. Only an object binds slots. */
const anyOverrides = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(Schema.Natural), overrides, Arbitrary.schema(Schema.Json)]),
  ([kind, object, json]) => (kind % 4 === 0 ? json : object)
)

const fragment = Arbitrary.all({ content: text, variable_overrides: anyOverrides })
const fragments = Arbitrary.array(fragment, { maxLength: 5 })

const resolvedFields = Struct.keys(ResolvedPrompt.fields)

it.prop(
  "resolve joins the content and each fragment's filled content with two newlines, and returns only the fields of a resolved prompt",
  { content: text, fragments },
  ({ content, fragments }) => {
    const from = makeSource(content, fragments)
    const filled = fragments.map(({ content, variable_overrides }) =>
      fillByModel(content, variable_overrides)
    )
    const resolved_content = [content, ...filled].join("\n\n")
    assert.deepStrictEqual(
      Result.getOrThrow(resolve(from)),
      Struct.pick({ ...from, resolved_content, fragment_count: fragments.length }, resolvedFields)
    )
  },
  { arbitrary: { runs: 1000 } }
)

const isTooLarge = (content: string, fragments: ReadonlyArray<SourceFragment>): boolean => {
  const from = makeSource(content, fragments)
  const result = resolve(from)
  if (Result.isSuccess(result)) return false
  assert.deepStrictEqual(result.failure, ResolvedTooLarge(from.id))
  return true
}

/** Makes a text of this many bytes from a character of 1 to 4 bytes. */
const makeText = (bytes: number, char: string): string => {
  const size = Buffer.byteLength(char)
  return char.repeat(Math.floor(bytes / size)) + "x".repeat(bytes % size)
}

it.each(["x", "é", "€", "😀"])(
  "the size limit of resolved content is exact to the byte for characters like %s",
  (char) => {
    const full = makeText(sizes.contentBytes, char)
    assert.isFalse(isTooLarge(full, []))
    assert.isTrue(isTooLarge(`${full}x`, []))
    const rest = makeText(sizes.contentBytes - 2 - 100, char)
    const [whole, slot] = [
      { content: rest, variable_overrides: {} },
      { content: "{{a}}", variable_overrides: { a: rest } }
    ]
    const empty = { content: "", variable_overrides: {} }
    for (const use of [whole, slot]) {
      assert.isFalse(isTooLarge("h".repeat(100), [use]))
      assert.isTrue(isTooLarge("h".repeat(101), [use]))
      assert.isTrue(isTooLarge("h".repeat(100), [use, empty]))
    }
  }
)

it("resolve fails if the contents of a prompt and its fragments together have more than 2 MiB before slots are filled", () => {
  const slots = `{{${"a".repeat(250)}}}`.repeat(sizes.sourceBytes / 512)
  const half = { content: slots, variable_overrides: { ["a".repeat(250)]: "" } }
  assert.isFalse(isTooLarge("x".repeat(10_000), [half, half]))
  assert.isTrue(isTooLarge("x".repeat(50_000), [half, half]))
})

it("resolve stops as soon as the size limit is exceeded", () => {
  const mebibyte = "x".repeat(1024 * 1024)
  const untouched: SourceFragment = {
    content: "{{a}}",
    get variable_overrides(): unknown {
      throw new Error("read beyond the limit")
    }
  }
  const steps = { content: "{{a}}".repeat(sizes.contentSlots), variable_overrides: { a: mebibyte } }
  assert.isTrue(isTooLarge("", [steps, untouched]))
})

/** Returns the time of the fastest of 10 runs, because other processes disturb this run least. */
const measureBestTime = (run: () => void): number => {
  const times = Array.from({ length: 10 }, () => {
    const start = performance.now()
    run()
    return performance.now() - start
  })
  return Math.min(...times)
}

const hostile: Record<string, (size: number) => string> = {
  "an open slot of blanks": (size) => `{{${" ".repeat(size)}`,
  "open braces": (size) => "{".repeat(size),
  "braces that open and close": (size) => "{{}}".repeat(size / 4),
  "open slots": (size) => "{{ ".repeat(size / 3),
  "slots one character short of closing": (size) => `{{${"a".repeat(255)}}`.repeat(size / 258),
  "slots one character too long": (size) => `{{${" ".repeat(257)}}}`.repeat(size / 261),
  "closing braces": (size) => `{{${"}".repeat(size)}`,
  "blank slots": (size) => "{{ }}".repeat(size / 5)
}

// In quadratic time, one long text takes 64 times as long as 64 short texts with the same total length.
it.each(Object.keys(hostile))("fillSlots fills hostile content in linear time: %s", (kind) => {
  const measure = (size: number, count: number) => {
    const content = hostile[kind]!(size)
    return measureBestTime(() => {
      for (let n = 0; n < count; n++) assert.strictEqual(fillSlots(content, { a: "x" }), content)
    })
  }
  assert.isBelow(measure(65_536, 1), 8 * measure(1_024, 64))
})
