import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import type { FileChange } from "../../../src/application/transfer/FileImport.ts"
import type { Texts } from "../../../src/application/transfer/PromptFile.ts"
import type { PromptId } from "../../../src/domain/Prompt.ts"
import { isEmptyEdit, type WorkspaceContent } from "../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  folder,
  fragment,
  fragmentBinding,
  newId,
  prompt,
  tag,
  toWorkspaceContent,
  version,
  versionNumber
} from "../../support/archives.ts"
import {
  importFiles,
  makeImported,
  now,
  pairFiles,
  planFiles,
  renderFiles
} from "../../support/promptFiles.ts"

/** Imports the files of a workspace after their texts were changed. Checks that a second import changes nothing. */
const importChanged = (source: Archive, change: (texts: Texts) => Texts) => {
  const home = source.workspace.id
  const texts = change(renderFiles(source))
  const imported = importFiles(home, toWorkspaceContent(source), texts)
  assert.isTrue(isEmptyEdit(importFiles(home, imported.content, texts).edit))
  return imported
}

const replaceIn =
  (path: string, from: string | RegExp, to: string) =>
  (texts: Texts): Texts =>
    new Map([...texts, [path, texts.get(path)!.replace(from, to)]])

const summarize = (changes: ReadonlyArray<FileChange>) => changes.map(({ change, path }) => [change, path])

describe("planImport", () => {
  it("a changed body becomes a new version: its number is one more than the highest number, and its parent is the version that was current before the import", () => {
    const [one, seven] = [version(1), version(7)]
    const agent = prompt({ title: "Agent", current_version: 1, versions: [one, seven] })
    const path = "prompts/agent.md"
    const { changes, edit } = importChanged(
      archive({ prompts: [agent, prompt({ title: "Other" })] }),
      replaceIn(path, /Content\n$/, "Changed\n")
    )
    const { before, after, ...change } = changes[0]!
    assert.deepStrictEqual(change, {
      kind: "prompt",
      id: agent.id,
      path,
      name: "Agent",
      change: "new version"
    })
    assert.deepStrictEqual<unknown>(after, { ...before, current_content: "Changed" })
    assert.deepStrictEqual(edit.prompts, [
      {
        ...agent,
        current_content: "Changed",
        current_version: 8,
        updated_at: now,
        versions: [
          {
            id: edit.prompts[0]!.versions[0]!.id,
            version_number: versionNumber(8),
            content: "Changed",
            change_summary: "",
            change_source: "import",
            parent_version_id: one.id,
            metadata: {},
            created_at: now
          }
        ]
      }
    ])
  })

  it("if only the front matter changes, the prompt gets no new version, and the bindings of its fragments keep their ids", () => {
    const [tone, limits] = [fragment("{{x}}", { name: "tone" }), fragment("{{x}}", { name: "limits" })]
    const label = tag("production")
    const bindings = [
      fragmentBinding(tone, 1, { variable_overrides: { x: 1 } }),
      fragmentBinding(limits, 2, { variable_overrides: { x: 2 } })
    ]
    const agent = prompt({ title: "Agent", tags: [label.id], fragments: bindings, versions: [version(1)] })
    const { changes, edit } = importChanged(
      archive({ tags: [label], fragments: [tone, limits], prompts: [agent] }),
      (texts) =>
        new Map([
          ...texts,
          [
            "prompts/agent.md",
            `---
id: ${agent.id}
title: Hello
description: Changed
type: few-shot
model: other
intent: other
favorite: ${!agent.is_favorite}
sort_order: 9
folder: New folder
tags: [new, production]
fragments:
  - fragment: limits
    with: { x: 2 }
  - fragment: tone
    with: { x: 1 }
---
${agent.current_content}
`
          ]
        ])
    )
    assert.deepStrictEqual(summarize(changes), [["changed", "prompts/agent.md"]])
    const [added] = edit.tags
    assert.deepStrictEqual(edit, {
      folders: [{ id: edit.folders[0]!.id, name: "New folder" }],
      tags: [{ id: added!.id, name: "new", color: "#808080" }],
      fragments: [],
      removedFragments: [],
      prompts: [
        {
          ...agent,
          title: "Hello",
          description: "Changed",
          prompt_type: "few-shot",
          target_model: "other",
          intent: "other",
          is_favorite: !agent.is_favorite,
          sort_order: 9,
          folder_id: edit.folders[0]!.id,
          updated_at: now,
          tags: [added!.id, label.id],
          fragments: bindings.toReversed().map(({ fragment_id, variable_overrides }, index) => ({
            id: bindings[index]!.id,
            fragment_id,
            variable_overrides,
            position: index + 1
          })),
          versions: []
        }
      ],
      importedStates: edit.importedStates
    })
  })

  it("a new file becomes a new prompt with version 1, or a new fragment, and a missing folder or tag is added once", () => {
    const home = newId<WorkspaceId>()
    const text = "---\ntags: [a]\nfragments:\n  - fragment: tone\n    with: { x: 1.10 }\n---\nBody\n"
    const texts = new Map([
      ["fragments/tone.md", "Be {{x}}\n"],
      ["prompts/Folder/first.md", text],
      ["prompts/Folder/second.md", text]
    ])
    const { edit, changes } = importFiles(home, toWorkspaceContent(archive()), texts)
    assert.deepStrictEqual(
      summarize(changes),
      [...texts.keys()].map((path) => ["added", path])
    )
    const [tone, first] = pairFiles(home, toWorkspaceContent(archive()), texts)
    assert.deepStrictEqual(edit.fragments, [{ id: tone!.id, name: "tone", content: "Be {{x}}" }])
    assert.deepStrictEqual(
      [edit.folders.map(({ name }) => name), edit.tags.map(({ name }) => name)],
      [["Folder"], ["a"]]
    )
    const [added] = edit.prompts
    assert.deepStrictEqual(added, {
      id: first!.id as PromptId,
      title: "first",
      description: "",
      current_content: "Body",
      prompt_type: "user",
      target_model: "",
      intent: "",
      is_favorite: false,
      sort_order: 0,
      current_version: 1,
      folder_id: edit.folders[0]!.id,
      is_archived: false,
      created_at: now,
      updated_at: now,
      tags: [edit.tags[0]!.id],
      fragments: [
        { id: added!.fragments[0]!.id, fragment_id: tone!.id, position: 1, variable_overrides: { x: 1.1 } }
      ],
      versions: [
        {
          id: added!.versions[0]!.id,
          version_number: versionNumber(1),
          content: "Body",
          change_summary: "",
          change_source: "import",
          parent_version_id: null,
          metadata: {},
          created_at: now
        }
      ]
    })
  })

  it("an import fails if a new or renamed prompt would get the name of another file's prompt", () => {
    const [agent, other] = [prompt({ title: "Support agent" }), prompt({ title: "Other" })]
    const source = archive({ prompts: [agent, other] })
    const texts = renderFiles(source)
    const plan = (changed: Texts) => planFiles(source.workspace.id, toWorkspaceContent(source), changed, true)
    const added = new Map([...texts, ["prompts/copy.md", "---\ntitle: SUPPORT agent!\n---\nText\n"]])
    const renamed = replaceIn("prompts/other.md", "title: Other", "title: Support Agent")(texts)
    for (const [changed, path] of [
      [added, "prompts/copy.md"],
      [renamed, "prompts/other.md"]
    ] as const) {
      const failure = Result.getOrThrow(Result.flip(plan(changed)))
      assert.deepStrictEqual(failure, {
        _tag: "InvalidFiles",
        count: 1,
        problems: [
          {
            path,
            message: "has the name support-agent, like prompts/support-agent.md: change one of the titles"
          }
        ]
      })
    }
    const swapped = replaceIn("prompts/support-agent.md", "title: Support agent", "title: Agent")(renamed)
    assert.isTrue(Result.isSuccess(plan(swapped)))
  })

  it("an import accepts prompts that already have the same name in the workspace", () => {
    const copies = [prompt({ title: "Agent" }), prompt({ title: "agent" })]
    const { edit } = importChanged(archive({ prompts: copies }), (texts) => texts)
    assert.isTrue(isEmptyEdit(edit))
  })

  it("a prompt without a file is archived, even if no file ever described it, and is restored when its file exists again", () => {
    const source = archive({ prompts: [prompt({ title: "Gone", versions: [version(1)] })] })
    const [home, texts] = [source.workspace.id, renderFiles(source)]
    const before = toWorkspaceContent(source)
    const { changes, content } = importFiles(home, before, new Map())
    const { before: _, after, ...change } = changes[0]!
    const { id } = source.prompts[0]!
    assert.deepStrictEqual(change, { kind: "prompt", id, path: null, name: "Gone", change: "archived" })
    assert.isNull(after)
    const archived = before.prompts.map((prompt) => ({ ...prompt, is_archived: true, updated_at: now }))
    assert.deepStrictEqual(content.prompts, archived)
    const restored = importFiles(home, content, texts)
    assert.deepStrictEqual(summarize(restored.changes), [["changed", "prompts/gone.md"]])
    assert.deepStrictEqual(restored.content.prompts, [{ ...before.prompts[0]!, updated_at: now }])
  })

  it("a fragment without a file is removed if no archived prompt contains the fragment", () => {
    const [unused, used] = [fragment("unused", { name: "unused" }), fragment("used", { name: "used" })]
    const source = archive({
      fragments: [unused, used],
      prompts: [prompt({ is_archived: true, fragments: [fragmentBinding(used, 1)] })]
    })
    const { edit, changes, fragmentNames } = importChanged(source, () => new Map())
    assert.deepStrictEqual(edit.removedFragments, [unused.id])
    assert.deepStrictEqual(summarize(changes), [["removed", null]])
    assert.deepStrictEqual(Object.fromEntries(fragmentNames), { [unused.id]: "unused", [used.id]: "used" })
  })

  it("a prompt stays in its folder even if another folder has the same name", () => {
    const [first, second] = [folder({ name: "Same" }), folder({ name: "Same" })]
    const source = archive({
      folders: [first, second],
      prompts: [prompt({ title: "A", folder_id: second.id })]
    })
    const { edit } = importChanged(source, replaceIn("prompts/Same/a.md", "title: A", "title: B"))
    assert.strictEqual(edit.prompts[0]!.folder_id, second.id)
  })

  const imported = {
    "fragments/tone.md": "Be {{x}}\n",
    "prompts/Support/agent.md":
      "---\ntags: [a]\nfragments:\n  - fragment: tone\n    with: { b: 1, a: { d: 1, c: 2 } }\n---\nAgent\n",
    "prompts/other.md": "---\nid: 6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51\n---\nOther\n"
  }

  /** Returns the path and the message of each edit that an import refuses to undo, or undefined if there are none. */
  const findConflicts = (home: WorkspaceId, content: WorkspaceContent, texts: Texts) =>
    Result.match(planFiles(home, content, texts), {
      onSuccess: () => undefined,
      onFailure: (failure) =>
        failure._tag === "ConflictingEdits"
          ? failure.edits.map(({ path, message }) => [path, message])
          : failure
    })

  it("an import refuses to undo an edit of any field", () => {
    const { home, texts, content } = makeImported(imported)
    const edit = (change: Partial<WorkspaceContent["prompts"][number]>): WorkspaceContent => ({
      ...content,
      prompts: content.prompts.map((one) => (one.title === "agent" ? { ...one, ...change } : one))
    })
    const fields: ReadonlyArray<Partial<WorkspaceContent["prompts"][number]>> = [
      { title: "x" },
      { description: "x" },
      { current_content: "x" },
      { prompt_type: "system" },
      { target_model: "x" },
      { intent: "x" },
      { is_favorite: true },
      { sort_order: 1 },
      { tags: [] },
      { fragments: [] },
      { folder_id: null }
    ]
    const editFragment = (change: Partial<WorkspaceContent["fragments"][number]>): WorkspaceContent => ({
      ...content,
      fragments: content.fragments.map((one) => ({ ...one, ...change }))
    })
    const renamed = { ...content, folders: content.folders.map((one) => ({ ...one, name: "x" })) }
    const edits: ReadonlyArray<readonly [WorkspaceContent, path: string]> = [
      ...[...fields.map(edit), renamed].map((edited) => [edited, "prompts/Support/agent.md"] as const),
      [editFragment({ name: "x" }), "fragments/tone.md"],
      [editFragment({ content: "x" }), "fragments/tone.md"]
    ]
    assert.isUndefined(findConflicts(home, content, texts))
    for (const [edited, path] of edits)
      assert.deepStrictEqual(findConflicts(home, edited, texts), [[path, "was edited"]])
  })

  it("an import refuses to restore an archived or deleted prompt, to archive an edited prompt, and to remove an edited fragment", () => {
    const { home, texts, content } = makeImported(imported)
    const [agent, other] = content.prompts.toSorted((a, b) => (a.title < b.title ? -1 : 1))
    const edited: WorkspaceContent = {
      ...content,
      fragments: content.fragments.map((one) => ({ ...one, content: "x" })),
      prompts: [{ ...agent!, is_archived: true }]
    }
    assert.deepStrictEqual(findConflicts(home, edited, texts), [
      ["fragments/tone.md", "was edited"],
      ["prompts/Support/agent.md", "was archived"],
      ["prompts/other.md", "was deleted"]
    ])
    const renamed = { ...edited, prompts: [{ ...agent!, title: "x", fragments: [] }, other!] }
    assert.deepStrictEqual(findConflicts(home, renamed, new Map([["prompts/a.md", "A\n"]])), [
      [`fragment ${content.fragments[0]!.id} (tone)`, "was edited"],
      [`prompt ${agent!.id} (x)`, "was edited"]
    ])
    // With overwrite, the import undoes all these edits. A deleted prompt gets the same id again.
    const { content: after } = importFiles(home, edited, texts)
    assert.deepStrictEqual(
      after.prompts.map(({ id }) => id).sort(),
      content.prompts.map(({ id }) => id).sort()
    )
    assert.isUndefined(findConflicts(home, after, texts))
  })

  it("an import reports no conflict with an edit that its files contain, and afterwards records the edited state", () => {
    const { home, texts, content } = makeImported(imported)
    const edited = {
      ...content,
      prompts: content.prompts.map((one) =>
        one.title === "other" ? { ...one, current_content: "Edited" } : one
      )
    }
    const merged = replaceIn("prompts/other.md", "Other", "Edited")(texts)
    assert.isUndefined(findConflicts(home, edited, merged))
    assert.deepStrictEqual(findConflicts(home, edited, texts), [["prompts/other.md", "was edited"]])
    const { edit, content: after } = importFiles(home, edited, merged)
    assert.isTrue(isEmptyEdit(edit))
    assert.isUndefined(findConflicts(home, after, texts))
  })

  it("each import after the first import reports a conflict about a prompt that was created in the workspace", () => {
    const { home, texts, content } = makeImported(imported)
    const [one] = content.prompts
    const created = { ...one!, id: newId<PromptId>() }
    const edited = { ...content, prompts: [...content.prompts, created] }
    assert.deepStrictEqual(findConflicts(home, edited, texts), [
      [`prompt ${created.id} (${created.title})`, "was created"]
    ])
    assert.isUndefined(findConflicts(home, { ...edited, importedStates: [] }, texts))
  })

  it("an import warns about each binding that names no slot, and about each slot without a binding", () => {
    const warn = (bindings: string, tone = "Write in a {{tone}} tone, in {{ language }}.") => {
      const agent = `---\nfragments:\n  - fragment: a/tone\n    with: ${bindings}\n---\n{{own}}\n`
      const texts = new Map([
        ["fragments/a/tone.md", tone],
        ["prompts/agent.md", agent]
      ])
      return importFiles(newId(), toWorkspaceContent(archive()), texts).warnings
    }
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

  it("an import warns about each new file without an id that has the content or the title of a prompt or fragment without a file", () => {
    const { home, content } = makeImported({
      "prompts/agent.md": "Agent\n",
      "prompts/other.md": "---\ntitle: Other\n---\nOther\n",
      "fragments/tone.md": "Tone\n"
    })
    const [agent, other] = ["agent", "Other"].map((title) =>
      content.prompts.find((one) => one.title === title)
    )
    const findMoves = (files: Record<string, string>) =>
      importFiles(home, content, new Map(Object.entries(files))).warnings.map(({ path, message }) => [
        path,
        message.split(":")[0]
      ])
    assert.deepStrictEqual(
      findMoves({
        "prompts/Support/agent2.md": "Agent\n",
        "prompts/new.md": "---\ntitle: Other\n---\nChanged\n",
        "fragments/style/tone.md": "Tone\n"
      }),
      [
        ["fragments/style/tone.md", `looks like a move of fragment ${content.fragments[0]?.id} (tone)`],
        ["prompts/Support/agent2.md", `looks like a move of prompt ${agent?.id} (agent)`],
        ["prompts/new.md", `looks like a move of prompt ${other?.id} (Other)`]
      ]
    )
    // A copy, a file with an id and an unrelated file are no moves.
    const copies = {
      "prompts/agent.md": "Agent\n",
      "prompts/agent2.md": "Agent\n",
      "prompts/new.md": `---\nid: ${newId()}\ntitle: Other\n---\nOther\n`,
      "fragments/new.md": "New\n"
    }
    assert.deepStrictEqual(findMoves(copies), [])
    // A moved file whose id is its earlier path keeps its prompt.
    const moved = new Map([
      ["prompts/Support/agent.md", "---\nid: prompts/agent.md\n---\nAgent\n"],
      ["prompts/other.md", "---\ntitle: Other\n---\nOther\n"],
      ["fragments/style/tone.md", "---\nid: fragments/tone.md\n---\nTone\n"]
    ])
    const { changes } = importFiles(home, content, moved)
    assert.deepStrictEqual(
      changes.map(({ id, path, change }) => ({ id, path, change })),
      [{ id: `${agent?.id}`, path: "prompts/Support/agent.md", change: "changed" }]
    )
  })
})
