import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { type PromptId, parsePromptId, Uuid } from "../../src/domain/Prompt.ts"
import {
  findName,
  findPrompt,
  maxSlugSourceLength,
  parsePromptReference,
  toSlug
} from "../../src/domain/PromptName.ts"

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

it.prop(
  "toSlug returns 1 to 64 ASCII characters that depend only on the start of the title",
  { title: Schema.String },
  ({ title }) => {
    assert.match(toSlug(title), /^[a-z0-9_-]{1,64}$/)
    const long = "é".repeat(maxSlugSourceLength)
    assert.strictEqual(toSlug(long + title), toSlug(long))
    const pairs = "😀".repeat(maxSlugSourceLength - 1)
    assert.strictEqual(toSlug(`${pairs}a${title}`), "a")
  }
)

const id = "2ab10e69-6f44-4d57-9b14-3a2c4e1f0a9d" as PromptId

it.each([
  [id.toUpperCase(), id],
  ["support-agent", { slug: "support-agent", digits: undefined }],
  ["support-agent-2ab10e69", { slug: "support-agent", digits: "2ab10e69" }],
  [`a-${"0".repeat(32)}`, { slug: "a", digits: "0".repeat(32) }],
  ["a".repeat(97), { slug: "a".repeat(97), digits: undefined }],
  ["a".repeat(98), undefined],
  ["Support-agent", undefined],
  ["support agent", undefined],
  ["", undefined]
])("parsePromptReference parses %j to %j", (text, reference) => {
  assert.deepStrictEqual(parsePromptReference(text), reference)
})

it.prop(
  "parsePromptReference parses a UUID in any letter case, and rejects a UUID with one wrong character",
  {
    at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 35 })),
    wrong: Schema.Literals(["", "G", "00", "--", " ", "\n", "\0", "%", "{", "０", "é", "\u212a", "İ"])
  },
  ({ at, wrong }) => {
    assert.isTrue(Schema.is(Uuid)(id) && !Schema.is(Uuid)(id.toUpperCase()))
    const text = id.slice(0, at) + wrong + id.slice(at + 1)
    assert.isUndefined(parsePromptId(text))
    assert.isUndefined(parsePromptReference(text.toUpperCase()))
  }
)

/** Titles, ids and times that collide often. */
const Prompts = Schema.Array(
  Schema.Struct({
    title: Schema.Literals(["A", "a!", "B", "a-00000001", "a-00000002", "A 00000001", "", "prompt", id]),
    start: Schema.Literals(["00000001", "00000002", "abcdefab"]),
    created_at: Schema.Literals(["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"]),
    is_archived: Schema.Boolean
  })
)

const make = (start: string, end: number, title: string, day: string, is_archived = false) => ({
  id: `${start}-0000-4000-8000-00000000000${end}` as PromptId,
  title,
  created_at: `${day}T00:00:00.000Z`,
  is_archived
})
const prompts = [
  make("aaaaaaaa", 2, "Support agent", "2026-01-02"),
  make("aaaaaaaa", 3, "Support agent", "2026-01-01"),
  make("bbbbbbbb", 1, "support  AGENT!", "2026-01-02"),
  make("aaaaaaaa", 1, "Support agent", "2025-01-01", true),
  make("cccccccc", 1, "Release 20260101", "2026-01-01"),
  make("dddddddd", 1, "dddddddd-0000-4000-8000-000000000002", "2026-01-01")
]

it.each([
  ["support-agent", prompts[1]],
  ["support-agent-aaaaaaaa", prompts[0]],
  ["support-agent-aaaaaaaa000040008000000000000002", prompts[0]],
  ["support-agent-aaaaaaaa000040008000000000000001", undefined],
  ["support-agent-bbbbbbbb", prompts[2]],
  ["support-agent-cccccccc", undefined],
  ["support", undefined],
  ["release-20260101", undefined],
  ["release-20260101-cccccccc", prompts[4]],
  ["dddddddd-0000-4000-8000-000000000002", undefined],
  ["dddddddd-0000-4000-8000-000000000002-dddddddd", prompts[5]],
  ["AAAAAAAA-0000-4000-8000-000000000001", prompts[3]]
])("findPrompt returns the prompt with the id or the name %j, or undefined", (text, expected) => {
  assert.strictEqual(findPrompt(prompts, parsePromptReference(text)!), expected)
})

type Parts = { readonly title: string; readonly start: string; readonly created_at: string }
const toPrompt = <A extends Parts>({ start, ...fields }: A, index: number) => ({
  ...fields,
  id: `${start}-0000-4000-8000-${String(index).padStart(12, "0")}` as PromptId
})

it.prop(
  "findName gives each prompt that is not archived a name that findPrompt resolves to this prompt",
  { prompts: Prompts },
  ({ prompts }) => {
    const all = prompts.map(toPrompt)
    for (const prompt of all) {
      const names = [findName(all, prompt), `${toSlug(prompt.title)}-${prompt.id.replaceAll("-", "")}`]
      for (const name of prompt.is_archived ? names.slice(1) : names) {
        const found = findPrompt(all, parsePromptReference(name)!)
        assert.strictEqual(found?.id, prompt.is_archived ? undefined : prompt.id)
      }
    }
  }
)

it.prop(
  "a newer prompt with the same slug does not change the name of an older prompt",
  { prompts: Prompts },
  ({ prompts }) => {
    const [first, ...others] = prompts.map((parts, index) => ({
      ...toPrompt(parts, index),
      created_at: `2026-01-${String(index + 1).padStart(2, "0")}T00:00:00.000Z`,
      is_archived: false
    }))
    if (first !== undefined) assert.strictEqual(findName([...others, first], first), findName([first], first))
  }
)
