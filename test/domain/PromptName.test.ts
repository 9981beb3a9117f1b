import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { parsePromptReference, type PromptId } from "../../src/domain/Prompt.ts"
import { findName, findPrompt, maxSlugSourceLength, toIdRange, toSlug } from "../../src/domain/PromptName.ts"

describe("toSlug", () => {
  it.each([
    ["Summarize a Ticket", "summarize-a-ticket"],
    ["test_simple_prompt", "test_simple_prompt"],
    ["  Größe: élan / 2nd try! ", "grosse-elan-2nd-try"],
    ["---", "prompt"],
    ["", "prompt"],
    ["プロンプト", "prompt"],
    ["a".repeat(100), "a".repeat(64)],
    [`${"a".repeat(63)} b`, "a".repeat(63)]
  ])("toSlug turns %j into %j", (title, slug) => {
    assert.strictEqual(toSlug(title), slug)
  })

  it.effect.prop(
    "toSlug returns 1 to 64 ASCII characters that depend only on the start of the title",
    { title: Schema.String },
    ({ title }) => {
      assert.match(toSlug(title), /^[a-z0-9_-]{1,64}$/)
      const long = "é".repeat(maxSlugSourceLength)
      assert.strictEqual(toSlug(long + title), toSlug(long))
      const pairs = "😀".repeat(maxSlugSourceLength - 1)
      assert.strictEqual(toSlug(`${pairs}a${title}`), "a")
      return Effect.void
    }
  )
})

const id = "2ab10e69-6f44-4d57-9b14-3a2c4e1f0a9d" as PromptId

describe("parsePromptReference", () => {
  it.each([
    [id, id],
    [id.toUpperCase(), id],
    ["support-agent", { slug: "support-agent", digits: undefined }],
    ["support-agent-2ab10e69", { slug: "support-agent", digits: "2ab10e69" }],
    [`a-${"0".repeat(32)}`, { slug: "a", digits: "0".repeat(32) }],
    ["a".repeat(97), { slug: "a".repeat(97), digits: undefined }],
    ["a".repeat(98), undefined],
    ["Support-agent", undefined],
    ["support agent", undefined],
    ["", undefined],
    ["é", undefined]
  ])("parsePromptReference parses %j to %j", (text, reference) => {
    assert.deepStrictEqual(parsePromptReference(text), reference)
  })
})

it("toIdRange returns the smallest and the largest id that start with the digits", () => {
  assert.deepStrictEqual(toIdRange("2ab10e69"), {
    first: "2ab10e69-0000-0000-0000-000000000000",
    last: "2ab10e69-ffff-ffff-ffff-ffffffffffff"
  })
  assert.deepStrictEqual(toIdRange(id.replaceAll("-", "")), { first: id, last: id })
})

/** Titles, ids and times that collide often. */
const Prompts = Schema.Array(
  Schema.Struct({
    title: Schema.Literals(["A", "a!", "B", "a-00000001", "a-00000002", "A 00000001", "", "prompt", id]),
    start: Schema.Literals(["00000001", "00000002", "abcdefab"]),
    created_at: Schema.Literals(["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"]),
    is_archived: Schema.Boolean
  })
)

describe("findName", () => {
  it.effect.prop(
    "findName gives each prompt that is not archived a name that findPrompt resolves to this prompt",
    { prompts: Prompts },
    ({ prompts }) => {
      const all = prompts.map(({ start, ...prompt }, index) => ({
        ...prompt,
        id: `${start}-0000-4000-8000-${String(index).padStart(12, "0")}` as PromptId
      }))
      for (const prompt of all) {
        const digits = prompt.id.replaceAll("-", "")
        const names = [findName(all, prompt), `${toSlug(prompt.title)}-${digits}`]
        for (const name of prompt.is_archived ? names.slice(1) : names) {
          const reference = parsePromptReference(name)
          assert.isDefined(reference)
          assert.strictEqual(findPrompt(all, reference!)?.id, prompt.is_archived ? undefined : prompt.id)
        }
      }
      return Effect.void
    }
  )

  it.effect.prop(
    "a newer prompt with the same slug does not change the name of a prompt",
    { prompts: Prompts },
    ({ prompts }) => {
      const [first, ...others] = prompts.map(({ start, ...prompt }, index) => ({
        ...prompt,
        created_at: `2026-01-${String(index + 1).padStart(2, "0")}T00:00:00.000Z`,
        is_archived: false,
        id: `${start}-0000-4000-8000-${String(index).padStart(12, "0")}` as PromptId
      }))
      if (first !== undefined)
        assert.strictEqual(findName([...others, first], first), findName([first], first))
      return Effect.void
    }
  )
})
