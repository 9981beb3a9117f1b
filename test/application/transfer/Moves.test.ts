import { assert, describe, it } from "@effect/vitest"
import { findMoves } from "../../../src/application/transfer/Moves.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { archive, newId, toWorkspaceContent } from "../../support/archives.ts"
import { importFiles, parseFiles } from "../../support/promptFiles.ts"

const home = newId<WorkspaceId>()
const before = importFiles(
  home,
  toWorkspaceContent(archive()),
  new Map([
    ["prompts/agent.md", "Agent\n"],
    ["prompts/other.md", "---\ntitle: Other\n---\nOther\n"],
    ["fragments/tone.md", "Tone\n"]
  ])
).content
const [agent, other] = ["agent", "Other"].map((title) => before.prompts.find((one) => one.title === title))
const tone = before.fragments[0]

const findMovesIn = (files: Record<string, string>) => {
  const texts = new Map(Object.entries(files))
  return findMoves(importFiles(home, before, texts).changes, parseFiles(home, texts)).map(
    ({ path, message }) => [path, message.split(":")[0]]
  )
}

describe("findMoves", () => {
  it("warns about each new file that has the content or the name of a prompt or fragment without a file", () => {
    assert.deepStrictEqual(
      findMovesIn({
        "prompts/Support/agent2.md": "Agent\n",
        "prompts/new.md": "---\ntitle: Other\n---\nChanged\n",
        "fragments/style/tone.md": "Tone\n"
      }),
      [
        ["fragments/style/tone.md", `looks like a move of fragment ${tone?.id} (tone)`],
        ["prompts/Support/agent2.md", `looks like a move of prompt ${agent?.id} (agent)`],
        ["prompts/new.md", `looks like a move of prompt ${other?.id} (Other)`]
      ]
    )
  })

  it("does not warn about a copy, about a file with an id, or about an unrelated file", () => {
    assert.deepStrictEqual(
      findMovesIn({
        "prompts/agent.md": "Agent\n",
        "prompts/copy.md": "Agent\n",
        "prompts/new.md": `---\nid: ${newId()}\ntitle: Other\n---\nOther\n`,
        "fragments/new.md": "New\n"
      }),
      []
    )
  })

  it("a moved file whose id is its earlier path keeps its prompt", () => {
    const texts = new Map([
      ["prompts/Support/agent.md", "---\nid: prompts/agent.md\n---\nAgent\n"],
      ["prompts/other.md", "---\ntitle: Other\n---\nOther\n"],
      ["fragments/style/tone.md", "---\nid: fragments/tone.md\n---\nTone\n"]
    ])
    const { changes } = importFiles(home, before, texts)
    assert.deepStrictEqual(
      changes.map(({ id, path, change }) => ({ id, path, change })),
      [{ id: `${agent?.id}`, path: "prompts/Support/agent.md", change: "changed" }]
    )
  })
})
