import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { PromptId } from "../../src/domain/Prompt.ts"
import { resolve } from "../../src/domain/Resolution.ts"
import { newId } from "../../test/support/archives.ts"
import {
  fillSlots,
  MissingVariablesError,
  PromptClientError,
  type PromptType,
  type ResolvedPrompt,
  toMessage
} from "../src/index.ts"

/** Fills a fragment with the domain's `resolve`, and records the slot names that `resolve` looks up. */
const fillByDomain = (content: string, bindings: object) => {
  const names = new Set<string>()
  const variable_overrides = new Proxy(bindings, {
    getOwnPropertyDescriptor: (target, name) => {
      names.add(String(name))
      return Reflect.getOwnPropertyDescriptor(target, name)
    }
  })
  const source = {
    id: newId<PromptId>(),
    current_content: "",
    fragments: [{ content, variable_overrides }],
    // If the size is given, `resolve` does not read the overrides to count it.
    bytes: 0
  }
  return { text: Result.getOrThrow(resolve(source)).resolved_content.slice(2), names: [...names] }
}

/** Returns the filled text, or the names of the missing variables. */
const tryFill = (content: string, variables: object) => {
  try {
    return fillSlots(content, variables as Record<string, string>)
  } catch (error) {
    assert.instanceOf(error, MissingVariablesError)
    assert.instanceOf(error, PromptClientError)
    const missing = error.missing.map((name) => `{{${name}}}`).join(", ")
    assert.include(error, { name: "MissingVariablesError", message: `No value for ${missing}` })
    return error.missing
  }
}

const names = ["a", "b", "tone", "__proto__", "constructor", "toString", "", "ä", "$&", "$1", "a b", "😀"]
const pieces = [
  ...names.flatMap((name) => [`{{${name}}}`, `{{ ${name}\t}}`, `{{\n${name}}}`, name]),
  ..."{{ }} { } {{{a}}} {{a} {a}} {{a{b}} {{}} $` \\ 😀".split(" "),
  "{{ }}",
  "{{\u00a0\ufeff}}",
  "{{\u00a0a\u2003}}",
  `{{${"x".repeat(256)}}}`,
  `{{${"x".repeat(257)}}}`,
  `{{${"😀".repeat(128)}}}`
]
const text = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals(pieces)), { maxLength: 12 }),
  (parts) => parts.join("")
)
const value = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(Schema.Natural), text, Arbitrary.schema(Schema.Json)]),
  ([kind, text, json]) => (kind % 4 > 0 ? text : json)
)
const name = Arbitrary.schema(Schema.Literals([...names, "x".repeat(256)]))
const variables = Arbitrary.map(
  Arbitrary.array(Arbitrary.all([name, value]), { maxLength: 12 }),
  (entries): object => Object.fromEntries(entries)
)

describe("fillSlots", () => {
  it.prop(
    "fillSlots finds the same slots as the service, and either fills every slot or names every slot without a value",
    { content: text, variables },
    ({ content, variables }) => {
      const domain = fillByDomain(content, variables)
      const bound = new Map<string, unknown>(Object.entries(variables))
      const missing = domain.names.filter(
        (name) => !["string", "number", "boolean"].includes(typeof bound.get(name))
      )
      assert.deepStrictEqual(tryFill(content, variables), missing.length === 0 ? domain.text : missing)
    },
    { arbitrary: { runs: 2000 } }
  )

  it("fillSlots and toMessage throw a TypeError for a prompt that is neither a text nor the data of getResolved", () => {
    for (const value of [{ data: { resolved_content: "Hi" } }, undefined, null, 7, { resolved_content: 7 }]) {
      const prompt = value as unknown as Pick<ResolvedPrompt, "resolved_content" | "prompt_type">
      assert.throws(() => fillSlots(prompt, {}), TypeError)
      assert.throws(() => toMessage(prompt, {}), TypeError)
    }
    assert.throws(() => fillSlots("{{a}}", undefined as never), MissingVariablesError)
  })

  it("toMessage fills the slots, and returns the role user except for system and assistant prompts", () => {
    const roles = {
      system: "system",
      assistant: "assistant",
      user: "user",
      template: "user",
      "few-shot": "user"
    }
    for (const [type, role] of Object.entries(roles))
      assert.deepStrictEqual(
        toMessage({ prompt_type: type as PromptType, resolved_content: "Hi {{a}}" }, { a: 1 }),
        { role, content: "Hi 1" }
      )
  })
})
