import { assert, it } from "@effect/vitest"
import { renderDiff } from "../../../../../src/adapters/inbound/cli/output/ChangeText.ts"
import { describeChange } from "../../../../../src/adapters/inbound/cli/transfer/FileTransfer.ts"
import type { PromptState } from "../../../../../src/application/transfer/ContentState.ts"
import type { FileChange } from "../../../../../src/application/transfer/FileImport.ts"
import { renderState } from "../../../../../src/application/transfer/PromptFileText.ts"
import { newId } from "../../../../support/archives.ts"
import { fileDefaults } from "../../../../support/promptFiles.ts"

const state = (overrides: Partial<PromptState> = {}): PromptState => ({
  ...fileDefaults,
  kind: "prompt",
  folder: null,
  title: "Agent",
  current_content: "One\nTwo\nThree",
  tags: [],
  fragments: [],
  ...overrides
})

const path = "prompts/agent.md"

const change = (before: PromptState | null, after: PromptState | null): FileChange => ({
  kind: "prompt",
  id: newId(),
  path,
  name: "Agent",
  change: "changed",
  before,
  after
})

/** Renders the diff of a change. The changed file has the text that an export writes. */
const render = (before: PromptState | null, after: PromptState | null): string =>
  renderDiff(
    change(before, after),
    new Map(after === null ? [] : [[path, renderState(after, new Map())]]),
    new Map()
  )

it("renderDiff shows the lines of the file with their comments and their formatting, whatever the line ending", () => {
  const after = state({ current_content: "One\n2\nThree", tags: ["a", "b"] })
  const before = { ...after, title: "Old", current_content: "One\nTwo\nThree" }
  const lines = ["---", "tags: [b,  a]   # two", "title:   'Agent'", "---", "One", "2", "Three"]
  const diff = [" ---", " tags: [b,  a]   # two", "-title: Old", "+title:   'Agent'", " ---", " One", "-Two"]
  for (const newline of ["\n", "\r\n"])
    assert.strictEqual(
      renderDiff(change(before, after), new Map([[path, `${lines.join(newline)}${newline}`]]), new Map()),
      ["@@ -1,7 +1,7 @@", ...diff, "+2", " Three"].join("\n")
    )
})

it("renderDiff shows all lines of an added prompt and of a removed fragment, and no line of an archived prompt", () => {
  assert.strictEqual(
    render(null, state()),
    "@@ -0,0 +1,7 @@\n+---\n+title: Agent\n+type: user\n+---\n+One\n+Two\n+Three"
  )
  assert.strictEqual(render(state(), null), "")
  const fragment = { kind: "fragment", name: "Tone", content: "Kind" } as const
  const removed = { ...change(null, null), kind: "fragment", path: null, before: fragment } as const
  assert.strictEqual(
    renderDiff(removed, new Map(), new Map()),
    "@@ -1,4 +0,0 @@\n----\n-name: Tone\n----\n-Kind"
  )
})

it("renderDiff and describeChange replace all characters that control the terminal except tabs", () => {
  const after = state({ current_content: "One\nTwo\nThree\n\ta\u001b[2J" })
  assert.match(render(state(), after), /^\+\ta\ufffd\[2J$/m)
  const line = describeChange({ ...change(null, state()), name: "\u001b[2J" })
  assert.strictEqual(line, "changed: prompt prompts/agent.md (\ufffd[2J)")
})

it("renderDiff renders one line instead of a diff if more than 2,000 lines differ", () => {
  const lines = (letter: string) => Array.from({ length: 20_000 }, (_, index) => letter + index).join("\n")
  assert.strictEqual(
    render(state({ current_content: lines("a") }), state({ current_content: lines("b") })),
    "(more than 2000 lines differ)"
  )
})
