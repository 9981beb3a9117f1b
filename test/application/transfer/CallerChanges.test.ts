import { assert, describe, it } from "@effect/vitest"
import { findCallerChanges } from "../../../src/application/transfer/CallerChanges.ts"
import { archive, instant, prompt, toWorkspaceContent } from "../../support/archives.ts"
import { makeImported, pairFiles, renderFiles } from "../../support/promptFiles.ts"

const files = {
  "fragments/tone.md": "Write in a {{tone}} tone.",
  "prompts/agent.md":
    "---\ntype: system\nfragments:\n- fragment: tone\n  with: {tone: kind}\n---\nYou serve {{shop}}.",
  "prompts/summary.md": "Summarize {{text}} for {{reader}}."
}
const { home, content } = makeImported(files)

/** Returns the changes that an import of the changed files makes to a workspace that has the files. */
const change = (changed: Record<string, string>) =>
  findCallerChanges(pairFiles(home, content, new Map(Object.entries(changed))))

const agent = { name: "agent", new_name: "agent", type: "system", new_type: "system" } as const
const summary = { name: "summary", new_name: "summary", type: "user", new_type: "user" } as const
const sameSlots = { removed_slots: [], added_slots: [] }

describe("findCallerChanges", () => {
  it("a new prompt, or another text with the same slots, breaks no application", () => {
    assert.deepStrictEqual(
      change({ ...files, "prompts/new.md": "{{x}}", "prompts/summary.md": "For {{reader}}: {{ text }}" }),
      []
    )
  })

  it("slots are removed and added by the prompt's own text, by its bindings and by its fragments", () => {
    assert.deepStrictEqual(
      change({
        "prompts/agent.md": files["prompts/agent.md"].replace("tone: kind", "tone: {}"),
        "prompts/summary.md": "Summarize {{body}} for {{reader}}.",
        "fragments/tone.md": "Write in a {{tone}} tone, in {{language}}."
      }),
      [
        { ...agent, removed_slots: [], added_slots: ["tone", "language"] },
        { ...summary, removed_slots: ["text"], added_slots: ["body"] }
      ]
    )
  })

  it("a renamed prompt, a prompt without a file and another type break applications", () => {
    assert.deepStrictEqual(
      change({
        "prompts/summary.md": `---\ntitle: Brief\ntype: template\n---\n${files["prompts/summary.md"]}`
      }),
      [
        { ...agent, new_name: null, new_type: null, ...sameSlots },
        { ...summary, new_name: "brief", new_type: "template", ...sameSlots }
      ]
    )
  })

  it("a prompt in place of a prompt with the same name is compared with that prompt", () => {
    const { "prompts/summary.md": text, ...others } = files
    assert.deepStrictEqual(
      change({ ...others, "prompts/moved/summary.md": text.replace("{{text}}", "it") }),
      [{ ...summary, removed_slots: ["text"], added_slots: [] }]
    )
  })

  it("the name of the oldest prompt with a slug is the slug, so the next prompt gets it if the oldest is renamed", () => {
    const [old, young] = ["2026-01-01", "2026-01-02"].map((day) =>
      prompt({ title: "Agent", prompt_type: "user", created_at: instant(`${day}T00:00:00.000Z`) })
    )
    const source = archive({ prompts: [young!, old!] })
    const texts = new Map(
      [...renderFiles(source)].map(([path, text]) => [
        path,
        text.includes(old!.id) ? text.replace("title: Agent", "title: Other") : text
      ])
    )
    const type = { type: "user", new_type: "user", ...sameSlots } as const
    assert.sameDeepMembers(
      findCallerChanges(pairFiles(source.workspace.id, toWorkspaceContent(source), texts)) as Array<unknown>,
      [
        { name: "agent", new_name: "other", ...type },
        { name: `agent-${young!.id.slice(0, 8)}`, new_name: "agent", ...type }
      ]
    )
  })
})
