import { assert, it } from "@effect/vitest"
import { hashState } from "../../../src/application/transfer/ContentState.ts"

it("hashState returns the same hash in every version of the program, whatever the order of the members of free-form JSON", () => {
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
  const hash = "dbc1694d463fc4a32af9aae5eddd4203ffd57ade2d2950f7490c6751026bee77"
  assert.strictEqual(hashPrompt({ b: 1, a: "x" }), hash)
  assert.strictEqual(hashPrompt({ a: "x", b: 1 }), hash)
  assert.strictEqual(
    hashState({ kind: "fragment", name: "Tone", content: "Kind" }),
    "c260dcd08b93dfe4c9a84eeb178cf266a7c6db00b3b3440c49103b9d196d81f6"
  )
})
