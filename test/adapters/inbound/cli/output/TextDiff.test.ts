import { assert, describe, it } from "@effect/vitest"
import { applyPatch } from "diff"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { diffTexts } from "../../../../../src/adapters/inbound/cli/output/TextDiff.ts"
import { texts } from "../../../../support/archives.ts"

/** Texts of a few lines. Most lines occur in several texts. Some texts end without a newline. */
const contents: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.array(Arbitrary.schema(Schema.Literals(["", "one", "two", "three", "-", "+++ four"]))),
    Arbitrary.schema(Schema.Literals(["", "\n"])),
    texts
  ]),
  ([lines, end, text]) => [...lines, text].join("\n") + end
)

describe("diffTexts", () => {
  it.prop(
    "diffTexts returns a patch that turns the first text into the second text, and an empty patch for equal texts",
    { before: contents, after: contents },
    ({ before, after }) => {
      const patch = diffTexts(before, after)
      assert.strictEqual(patch === "", before === after)
      assert.strictEqual(patch === "" ? before : applyPatch(before, patch!), after)
    }
  )
})
