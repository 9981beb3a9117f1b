import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { PromptId } from "../../src/domain/Prompt.ts"
import { maxSlugSourceLength, PromptNames, truncateTitle, toSlug } from "../../src/domain/PromptNames.ts"

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
      assert.strictEqual(toSlug(truncateTitle(title)), toSlug(title))
      const long = "é".repeat(maxSlugSourceLength)
      assert.strictEqual(toSlug(long + title), toSlug(long))
      return Effect.void
    }
  )
})

const makeId = (start: string, end: number): PromptId =>
  `${start}-0000-4000-8000-${String(end).padStart(12, "0")}` as PromptId

const makeNames = (prompts: Iterable<{ readonly id: PromptId; readonly title: string }>): PromptNames => {
  const names = new PromptNames()
  for (const prompt of prompts) names.add(prompt)
  return names
}

/** Titles and ids that collide often. */
const Prompts = Schema.Array(
  Schema.Struct({
    title: Schema.Literals(["A", "a!", "B", "a-00000001", "a-00000002", "A 00000001", "", "prompt"]),
    start: Schema.Literals(["00000001", "00000002", "abcdefab"])
  })
)
const withIds = (prompts: typeof Prompts.Type) =>
  prompts.map(({ title, start }, index) => ({ id: makeId(start, index), title }))

describe("PromptNames", () => {
  it.effect.prop(
    "PromptNames gives every prompt a unique name, and finds the prompt by this name",
    { prompts: Prompts },
    ({ prompts }) => {
      const all = withIds(prompts)
      const names = makeNames(all)
      const found = all.map((prompt) => names.findId(names.getName(prompt)))
      assert.deepStrictEqual(
        found,
        all.map(({ id }) => id)
      )
      assert.strictEqual(names.size, all.length)
      return Effect.void
    }
  )

  it.effect.prop(
    "after prompts are added or removed, an earlier name of a prompt finds the same prompt or no prompt",
    { prompts: Prompts },
    ({ prompts }) => {
      const all = withIds(prompts)
      const some = all.filter((_, index) => index % 2 === 0)
      const namesOfAll = makeNames(all)
      const namesOfSome = makeNames(some)
      for (const prompt of some) {
        assert.include([prompt.id, undefined], namesOfAll.findId(namesOfSome.getName(prompt)))
        assert.include([prompt.id, undefined], namesOfSome.findId(namesOfAll.getName(prompt)))
      }
      return Effect.void
    }
  )

  it("PromptNames appends digits of the id to equal slugs, and finds any prompt by its slug with these digits", () => {
    const [first, second, third] = [makeId("aaaaaaaa", 1), makeId("bbbbbbbb", 2), makeId("cccccccc", 3)]
    const titles = [
      { id: first, title: "Same" },
      { id: second, title: "same." },
      { id: third, title: "Other" }
    ]
    const names = makeNames(titles)
    assert.deepStrictEqual(
      titles.map((prompt) => names.getName(prompt)),
      ["same-aaaaaaaa", "same-bbbbbbbb", "other"]
    )
    assert.deepStrictEqual(
      ["same", "other-cccccccc", "other-aaaaaaaa", "none", ""].map((name) => names.findId(name)),
      [undefined, third, undefined, undefined, undefined]
    )
  })
})
