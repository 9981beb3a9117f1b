import { assert, describe, it } from "@effect/vitest"
import { findSlotWarnings } from "../../../src/application/transfer/SlotWarnings.ts"
import { findSlots } from "../../../src/domain/Resolution.ts"
import { newId } from "../../support/archives.ts"
import { parseFiles } from "../../support/promptFiles.ts"

const warn = (bindings: string, tone = "Write in a {{tone}} tone, in {{ language }}.") =>
  findSlotWarnings(
    parseFiles(
      newId(),
      new Map([
        ["fragments/a/tone.md", tone],
        ["prompts/agent.md", `---\nfragments:\n  - fragment: a/tone\n    with: ${bindings}\n---\n{{own}}\n`]
      ])
    )
  )

describe("findSlotWarnings", () => {
  it("findSlotWarnings returns a warning for each binding that names no slot, and for each slot without a binding", () => {
    const path = "prompts/agent.md"
    assert.deepStrictEqual(warn("{tone: kind, language: English}"), [])
    assert.deepStrictEqual(warn("{tonee: kind, language: English}"), [
      { path, message: "binds tonee, which is no slot of fragments/a/tone.md" },
      { path, message: "does not bind the slot {{tone}} of fragments/a/tone.md" }
    ])
    // An override that is an object does not bind its slot.
    assert.deepStrictEqual(warn("{tone: {}, language: 1.10}"), [
      { path, message: "does not bind the slot {{tone}} of fragments/a/tone.md" }
    ])
    assert.deepStrictEqual(warn("{}", "No slots: {{ }} {{{{"), [])
  })
})

it("findSlots returns each slot name once, without the white space around the name", () => {
  assert.deepStrictEqual([...findSlots("{{a}} {{ a }} {{b\n}} {{}} {{ }} {c} {{{d}}}")], ["a", "b", "d"])
})
