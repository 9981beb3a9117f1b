import { assert, describe, it } from "@effect/vitest"
import { applyPatch } from "diff"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import {
  describeChange,
  diffTexts,
  renderDiff
} from "../../../../../src/adapters/inbound/cli/output/ChangeText.ts"
import { renderState } from "../../../../../src/application/transfer/PromptFileText.ts"
import type { PromptState } from "../../../../../src/domain/WorkspaceContent.ts"
import type { FileChange } from "../../../../../src/application/transfer/FileImport.ts"
import { newId, texts } from "../../../../support/archives.ts"

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

/** Renders the diff of a change whose file an export has written. */
const render = (before: PromptState | null, after: PromptState | null): string =>
  renderDiff(
    change(before, after),
    new Map(after === null ? [] : [[path, renderState(after, new Map())]]),
    new Map()
  )

describe("renderDiff", () => {
  it("renderDiff shows the lines of the file, with their comments, their formatting and any line ending", () => {
    const after = state({ current_content: "One\n2\nThree", tags: ["a", "b"] })
    const before = { ...after, title: "Old", current_content: "One\nTwo\nThree" }
    const lines = ["---", "tags: [b,  a]   # two", "title:   'Agent'", "---", "One", "2", "Three"]
    const diff = [
      " ---",
      " tags: [b,  a]   # two",
      "-title: Old",
      "+title:   'Agent'",
      " ---",
      " One",
      "-Two"
    ]
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
    const removed: FileChange = {
      kind: "fragment",
      id: newId(),
      path: null,
      name: "Tone",
      change: "removed",
      before: { kind: "fragment", name: "Tone", content: "Kind" },
      after: null
    }
    assert.strictEqual(
      renderDiff(removed, new Map(), new Map()),
      "@@ -1,4 +0,0 @@\n----\n-name: Tone\n----\n-Kind"
    )
  })

  it("renderDiff and describeChange replace characters that control the terminal, and keep tabs", () => {
    const after = state({ current_content: "One\nTwo\nThree\n\ta\u001b[2J" })
    assert.match(render(state(), after), /^\+\ta\ufffd\[2J$/m)
    assert.strictEqual(
      describeChange({ ...change(null, state()), name: "\u001b[2J" }),
      "changed: prompt prompts/agent.md (\ufffd[2J)"
    )
  })

  it("renderDiff renders one line instead of a diff if more than 2,000 lines differ", () => {
    const lines = (letter: string) => Array.from({ length: 20_000 }, (_, index) => letter + index).join("\n")
    assert.strictEqual(
      render(state({ current_content: lines("a") }), state({ current_content: lines("b") })),
      "(more than 2000 lines differ)"
    )
  })
})

/** Texts of a few lines. Most lines occur in several texts. Some texts end without a newline. */
const contents: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.array(Arbitrary.schema(Schema.Literals(["", "one", "two", "three", "-", "+++ four"]))),
    Arbitrary.schema(Schema.Literals(["", "\n"])),
    texts
  ]),
  ([lines, end, text]) => [...lines, text].join("\n") + end
)

it.prop(
  "diffTexts returns a patch that turns the first text into the second text, and an empty patch for equal texts",
  { before: contents, after: contents },
  ({ before, after }) => {
    const patch = diffTexts(before, after)
    assert.strictEqual(patch === "", before === after)
    assert.strictEqual(patch === "" ? before : applyPatch(before, patch!), after)
  }
)
