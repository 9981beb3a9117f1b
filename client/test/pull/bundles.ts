import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { newId } from "../../../test/support/archives.ts"
import type { BundledPrompt, PromptBundle } from "../../src/Bundle.ts"
import { renderBundle, sealPrompt } from "../../src/pull/BundleFile.ts"
import { listSlots } from "../../src/pull/PromptReader.ts"

/** Returns a prompt of a bundle, with the slots of its content. */
export const bundledPrompt = (overrides: Partial<BundledPrompt> = {}): BundledPrompt => {
  const fields = {
    id: newId<string>(),
    name: "support-agent",
    title: "Support agent",
    prompt_type: "system",
    target_model: "gpt-4o",
    content: "You are a support agent of {{shop}}.\nBe brief.",
    fragment_count: 2,
    version: 3,
    ...overrides
  }
  return sealPrompt({ ...fields, slots: listSlots(fields.content) })
}

/** Makes a bundle with valid hashes. */
export const makeBundle = (...prompts: ReadonlyArray<Partial<BundledPrompt>>): PromptBundle =>
  JSON.parse(renderBundle(prompts.map(bundledPrompt)))

const pieces = [
  ..."a b Z 0 9 _ - $ * / */ /* `` $ \\ ' \" { } {{a}} {{ b }} {{\u202e}} ß İ é 日本語 한 😀 delete".split(
    " "
  ),
  ..." \n\r\t\0\u0007\u0085\u2028\u2029\u202e\u200b\u0301\ufeff\ud800\udc00\ufffd"
]

/** Generates titles and contents with the special characters of JSON, comments, identifiers and slots. */
export const anyText = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.array(Arbitrary.schema(Schema.Literals(pieces)), { maxLength: 8 }),
    Arbitrary.schema(Schema.String)
  ]),
  ([parts, text]) => (parts.length % 4 === 3 ? text : parts.join(""))
)
