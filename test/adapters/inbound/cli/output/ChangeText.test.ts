import { assert, describe, it } from "@effect/vitest"
import { describeChange, renderDiff } from "../../../../../src/adapters/inbound/cli/output/ChangeText.ts"
import type { PromptState } from "../../../../../src/application/transfer/ContentState.ts"
import type { FileChange } from "../../../../../src/application/transfer/FileImport.ts"
import { newId } from "../../../../support/archives.ts"

const state = (overrides: Partial<PromptState> = {}): PromptState => ({
  kind: "prompt",
  folder: null,
  title: "Agent",
  description: "",
  current_content: "One\nTwo\nThree",
  prompt_type: "user",
  target_model: "",
  intent: "",
  is_favorite: false,
  sort_order: 0,
  tags: [],
  fragments: [],
  ...overrides
})

const change = (before: PromptState | null, after: PromptState | null): FileChange => ({
  kind: "prompt",
  id: newId(),
  path: "prompts/agent.md",
  name: "Agent",
  change: "changed",
  before,
  after
})

const tone = newId<string>()
const names = new Map([[tone, "tone"]])

describe("renderDiff", () => {
  it("renderDiff shows the lines of the front matter and the body that differ, with up to three lines of context", () => {
    const after = state({
      folder: "Support",
      current_content: "One\n2\nThree",
      fragments: [{ fragment_id: tone, variable_overrides: { x: 1 } }]
    })
    assert.strictEqual(
      renderDiff(change(state(), after), names),
      `@@ -1,7 +1,12 @@
 ---
 title: Agent
+folder: Support
 type: user
+fragments:
+  - fragment: tone
+    with:
+      x: 1
 ---
 One
-Two
+2
 Three`
    )
  })

  it("renderDiff shows all lines of an added prompt and of a removed fragment, and no line of an archived prompt", () => {
    assert.strictEqual(
      renderDiff(change(null, state()), names),
      "@@ -0,0 +1,7 @@\n+---\n+title: Agent\n+type: user\n+---\n+One\n+Two\n+Three"
    )
    assert.strictEqual(renderDiff(change(state(), null), names), "")
    const removed: FileChange = {
      kind: "fragment",
      id: tone,
      path: null,
      name: "Tone",
      change: "removed",
      before: { kind: "fragment", name: "Tone", content: "Kind" },
      after: null
    }
    assert.strictEqual(renderDiff(removed, names), "@@ -1,4 +0,0 @@\n----\n-name: Tone\n----\n-Kind")
  })

  it("renderDiff keeps empty lines at the end, and shows nothing if no line differs", () => {
    const [before, after] = [state({ current_content: "One\n\n" }), state({ current_content: "1\n\n" })]
    assert.match(renderDiff(change(before, after), names), /\n-One\n\+1\n \n $/)
    assert.strictEqual(renderDiff(change(before, before), names), "")
  })

  it("renderDiff and describeChange replace characters that control the terminal, and keep tabs", () => {
    const after = state({ current_content: "One\nTwo\nThree\n\ta\u001b[2J" })
    assert.match(renderDiff(change(state(), after), names), /^\+\ta\ufffd\[2J$/m)
    assert.strictEqual(
      describeChange({ ...change(null, state()), name: "\u001b[2J" }),
      "changed: prompt prompts/agent.md (\ufffd[2J)"
    )
  })

  it("renderDiff renders one line instead of a diff if more than 2,000 lines differ", () => {
    const lines = (letter: string) =>
      Array.from({ length: 20_000 }, (_, index) => `${letter}${index}`).join("\n")
    assert.strictEqual(
      renderDiff(
        change(state({ current_content: lines("a") }), state({ current_content: lines("b") })),
        names
      ),
      "(more than 2000 lines differ)"
    )
  })
})
