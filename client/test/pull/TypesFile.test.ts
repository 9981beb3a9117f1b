import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { renderTypes, toConstantName } from "../../src/pull/TypesFile.ts"
import { oneOf } from "../support.ts"
import { anyText, bundledPrompt } from "./bundles.ts"

const name = Arbitrary.schema(Schema.String.check(Schema.isPattern(/^[a-z0-9_-]{1,10}$/)))

/** The reserved words of ECMAScript, and other names that no constant of a module can have. */
const words = (
  "arguments await break case catch class const continue debugger default delete do else enum eval export exports extends " +
  "false finally for function if implements import in instanceof interface let module new null package private protected " +
  "public require return static super switch this throw true try typeof var void while with yield"
).split(" ")

/** Returns true if a constant with this name can be declared in an ES module and in a CommonJS module. */
const isValidName = (name: string): boolean => {
  try {
    new Function(
      "module",
      "exports",
      "require",
      `"use strict"; async () => { const ${name} = 1; return ${name} }`
    )
    return /^[A-Za-z_]\w*$/.test(name)
  } catch {
    return false
  }
}

it.prop(
  "toConstantName makes a valid name of a constant from the name of every prompt",
  { name, word: oneOf(...words) },
  ({ name, word }) => {
    for (const text of [name, word]) assert.isTrue(isValidName(toConstantName(text)), text)
  },
  { arbitrary: { runs: 1_000 } }
)

it("toConstantName returns the name of a prompt in camel case, with an underscore where camel case is not possible", () => {
  const examples = {
    "support-agent": "supportAgent",
    "html5-parser": "html5Parser",
    "gpt-4": "gpt_4",
    "3-tips": "_3Tips",
    order_id: "order_id",
    delete: "delete_",
    await: "await_",
    module: "module_"
  }
  for (const [name, expected] of Object.entries(examples)) assert.strictEqual(toConstantName(name), expected)
})

it("renderTypes throws if two names give the same constant", () => {
  assert.throws(
    () => renderTypes(["gpt-4", "gpt_4"].map((name) => bundledPrompt({ name }))),
    "the prompts gpt-4 and gpt_4 would have the same constant gpt_4; change the title of one of them"
  )
})

it.prop(
  "renderTypes writes the constant, the name, the type, the model and the slots of every prompt, whatever their characters",
  { titles: Arbitrary.array(anyText, { maxLength: 12 }) },
  ({ titles }) => {
    const prompts = titles.map((text, index) => ({
      ...{ ...bundledPrompt(), name: `prompt_${index}`, title: text },
      ...{ prompt_type: text, target_model: text, slots: [text] }
    }))
    const rendered = renderTypes(prompts)
    const constants = rendered.matchAll(
      /^export const (\w+) = \{\n {2}name: (".*"),\n {2}type: (".*"),\n(?: {2}model: (".*"),\n)? {2}slots: (\[.*\])\n\} as const$/gm
    )
    assert.deepStrictEqual(
      [...constants].map(([, constant, ...fields]) => [
        constant,
        ...fields.map((field = '""') => JSON.parse(field))
      ]),
      prompts.map(({ name, title, slots }) => [name, name, title, title, slots])
    )
    assert.notMatch(
      rendered,
      /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u,
      "no character controls a terminal or an editor"
    )
  }
)
