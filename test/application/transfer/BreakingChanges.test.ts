import { assert, it } from "@effect/vitest"
import { findBreakingChanges } from "../../../src/application/transfer/BreakingChanges.ts"
import { archive, instant, prompt, toWorkspaceContent } from "../../support/archives.ts"
import { makeImported, pairFiles, renderFiles } from "../../support/promptFiles.ts"

const files = {
  "fragments/tone.md": "Write in a {{tone}} tone.",
  "prompts/agent.md":
    "---\ntype: system\nfragments:\n- fragment: tone\n  with: {tone: kind}\n---\nYou serve {{shop}}.",
  "prompts/summary.md": "Summarize {{text}} for {{reader}}."
}
const { home, content } = makeImported(files)

const unchanged = { removed_slots: [], added_slots: [] }
const agent = { name: "agent", new_name: "agent", type: "system", new_type: "system", ...unchanged }
const summary = { name: "summary", new_name: "summary", type: "user", new_type: "user", ...unchanged }

it.each<readonly [what: string, changed: Record<string, string>, changes: ReadonlyArray<object>]>([
  [
    "a new prompt, and a new text with the same slots, break no application",
    { ...files, "prompts/new.md": "{{x}}", "prompts/summary.md": "For {{reader}}: {{ text }}" },
    []
  ],
  [
    "a change to a prompt's text, bindings or fragments breaks applications if the change removes or adds slots",
    {
      "prompts/agent.md": files["prompts/agent.md"].replace("tone: kind", "tone: {}"),
      "prompts/summary.md": "Summarize {{body}} for {{reader}}.",
      "fragments/tone.md": "Write in a {{tone}} tone, in {{language}}."
    },
    [
      { ...agent, added_slots: ["tone", "language"] },
      { ...summary, removed_slots: ["text"], added_slots: ["body"] }
    ]
  ],
  [
    "findBreakingChanges compares a new prompt with the archived prompt of the same name, and reports a prompt without a file",
    { "prompts/moved/summary.md": files["prompts/summary.md"].replace("{{text}}", "it") },
    [
      { ...agent, new_name: null, new_type: null },
      { ...summary, removed_slots: ["text"] }
    ]
  ]
])("%s", (_, changed, changes) => {
  const pairs = pairFiles(home, content, new Map(Object.entries(changed)))
  assert.deepStrictEqual(findBreakingChanges(pairs), changes as never)
})

it("if the oldest prompt with a slug is renamed, the next prompt with this slug gets the slug as its name", () => {
  const [old, young] = ["2026-01-01", "2026-01-02"].map((day) =>
    prompt({ title: "Agent", prompt_type: "user", created_at: instant(`${day}T00:00:00.000Z`) })
  )
  const source = archive({ prompts: [young!, old!] })
  const rename = (text: string) => text.replace(`${old!.id}\ntitle: Agent`, `${old!.id}\ntitle: Other`)
  const texts = [...renderFiles(source)].map(([path, text]) => [path, rename(text)] as const)
  const pairs = pairFiles(source.workspace.id, toWorkspaceContent(source), new Map(texts))
  assert.deepStrictEqual(
    findBreakingChanges(pairs).map(({ name, new_name }) => [name, new_name]),
    [
      ["agent", "other"],
      [`agent-${young!.id.slice(0, 8)}`, "agent"]
    ]
  )
})
