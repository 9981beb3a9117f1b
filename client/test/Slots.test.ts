import { assert, it } from "@effect/vitest"
import { PromptType } from "../../src/domain/Prompt.ts"
import * as Resolution from "../../src/domain/Resolution.ts"
import { overrides, text } from "../../test/support/generatedTexts.ts"
import {
  fillSlots,
  MissingVariablesError,
  PromptClientError,
  type ResolvedPrompt,
  toMessage
} from "../src/index.ts"

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

it.prop(
  "fillSlots finds the same slots as the service, and either fills every slot or names every slot without a value",
  { content: text, variables: overrides },
  ({ content, variables }) => {
    const bound = new Map<string, unknown>(Object.entries(variables))
    const missing = [...Resolution.findSlots(content)].filter(
      (name) => Resolution.toSlotText(bound.get(name)) === undefined
    )
    const filled = Resolution.fillSlots(content, variables as Record<string, string>)
    assert.deepStrictEqual(tryFill(content, variables), missing.length === 0 ? filled : missing)
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

it("toMessage fills the slots, and returns the role system or assistant for prompts of this type, and user for all others", () => {
  for (const prompt_type of PromptType.literals) {
    const role = prompt_type === "system" || prompt_type === "assistant" ? prompt_type : "user"
    const message = toMessage({ prompt_type, resolved_content: "Hi {{a}}" }, { a: 1 })
    assert.deepStrictEqual(message, { role, content: "Hi 1" })
  }
})
