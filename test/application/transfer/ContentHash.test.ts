import { assert, it } from "@effect/vitest"
import { hashState } from "../../../src/application/transfer/ContentHash.ts"

it("hashState returns the hashes that existing databases contain, whatever the order of the members of free-form JSON", () => {
  const hashPrompt = (variable_overrides: Readonly<Record<string, unknown>>) =>
    hashState({
      kind: "prompt",
      folder: "Support",
      title: "Agent",
      description: "d",
      current_content: "One",
      prompt_type: "user",
      target_model: "",
      intent: "",
      is_favorite: true,
      sort_order: 1,
      tags: ["a", "b"],
      fragments: [{ fragment_id: "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51", variable_overrides }]
    })
  const hash = "2a82940f7bdf69dff962e37cbc9a8f06e0c0b9bd475097fbaf038db15d6c2203"
  assert.strictEqual(hashPrompt({ b: 1, a: "x" }), hash)
  assert.strictEqual(hashPrompt({ a: "x", b: 1 }), hash)
  assert.strictEqual(
    hashState({ kind: "fragment", name: "Tone", content: "Kind" }),
    "ed3a177b4068333bbec0c2f7be349624504f5f18d843ad400326257e63b89752"
  )
})
