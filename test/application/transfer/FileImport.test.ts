import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import type { FileChange } from "../../../src/application/transfer/FileImport.ts"
import { InvalidFiles, type Texts } from "../../../src/application/transfer/PromptFile.ts"
import type { PromptId } from "../../../src/domain/Prompt.ts"
import type { VersionId } from "../../../src/domain/Version.ts"
import type { PromptVersion } from "../../../src/domain/Workspace.ts"
import {
  type ContentEdit,
  type CurrentPrompt,
  isEmptyEdit,
  type WorkspaceContent
} from "../../../src/domain/WorkspaceContent.ts"
import {
  archive,
  folder,
  fragment,
  fragmentBinding,
  newId,
  prompt,
  tag,
  toWorkspaceContent,
  version
} from "../../support/archives.ts"
import {
  fileDefaults,
  importFiles,
  makeImported,
  now,
  planFiles,
  renderFiles
} from "../../support/promptFiles.ts"

/** Changes the files of a workspace and imports the files. Checks that a second import changes nothing. */
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

const toTexts = (files: Readonly<Record<string, string>>): Texts => new Map(Object.entries(files))

const summarize = (changes: ReadonlyArray<FileChange>) => changes.map(({ change, path }) => [change, path])

/** Returns the version that an edit adds to its first prompt. */
const importedVersion = (
  { prompts }: ContentEdit,
  number: number,
  content: string,
  parent_version_id: VersionId | null = null
): PromptVersion => {
  const { id } = prompts[0]!.versions[0]!
  const fields = { change_summary: "", change_source: "import", created_at: now }
  return version(number, { id, content, parent_version_id, ...fields })
}

describe("an import of files", () => {
  it("a file can change the folder and the tags of its prompt, and the prompt keeps an unchanged folder even if another folder has the same name", () => {
    const folders = [folder({ name: "Same" }), folder({ name: "Same" })]
    const source = archive({ folders, prompts: [prompt({ title: "A", folder_id: folders[1]!.id })] })
    const change = (to: string) => importChanged(source, replaceIn("prompts/Same/a.md", "title: A", to)).edit
    assert.strictEqual(change("title: B").prompts[0]!.folder_id, folders[1]!.id)
    const { folders: added, tags, prompts } = change("title: A\nfolder: New\ntags: [new]")
    assert.deepStrictEqual([added[0]!.name, tags[0]!.name], ["New", "new"])
    assert.deepStrictEqual([prompts[0]!.folder_id, prompts[0]!.tags], [added[0]!.id, [tags[0]!.id]])
  })

  it("a changed body becomes a new version, with the next number and with the previous current version as its parent", () => {
    const [one, seven] = [version(1), version(7)]
    const agent = prompt({ title: "Agent", current_version: 1, versions: [one, seven] })
    const path = "prompts/agent.md"
    const { changes, edit } = importChanged(
      archive({ prompts: [agent, prompt({ title: "Other" })] }),
      replaceIn(path, /Content\n$/, "Changed\n")
    )
    const { before, after, ...change } = changes[0]!
    const fields = { kind: "prompt", id: agent.id, path, name: "Agent", change: "new version" }
    assert.deepStrictEqual<unknown>(change, fields)
    assert.deepStrictEqual<unknown>(after, { ...before, current_content: "Changed" })
    const added = importedVersion(edit, 8, "Changed", one.id)
    assert.deepStrictEqual(edit.prompts, [
      {
        ...agent,
        current_content: "Changed",
        current_version: added.version_number,
        updated_at: now,
        versions: [added]
      }
    ])
  })

  it("if only the front matter changes, the prompt gets no new version, and the bindings of its fragments keep their ids", () => {
    const [tone, limits] = [fragment("{{x}}", { name: "tone" }), fragment("{{x}}", { name: "limits" })]
    const bindings = [tone, limits].map((of, index) => fragmentBinding(of, index + 1))
    const agent = prompt({ ...fileDefaults, title: "Agent", fragments: bindings, versions: [version(1)] })
    const list = "[{ fragment: limits, with: { x: 2 } }, { fragment: tone, with: { x: 1 } }]"
    const text = `---\nid: ${agent.id}\ntitle: Hello\nfragments: ${list}\n---\nContent\n`
    const { changes, edit } = importChanged(
      archive({ fragments: [tone, limits], prompts: [agent] }),
      (texts) => new Map([...texts, ["prompts/agent.md", text]])
    )
    assert.deepStrictEqual(summarize(changes), [["changed", "prompts/agent.md"]])
    const fragments = [limits, tone].map((of, index) =>
      fragmentBinding(of, index + 1, { id: bindings[index]!.id, variable_overrides: { x: 2 - index } })
    )
    assert.deepStrictEqual(edit.prompts, [
      { ...agent, title: "Hello", updated_at: now, fragments, versions: [] }
    ])
  })

  it("a new file becomes a new prompt with version 1, or a new fragment, and a missing folder or tag is added once", () => {
    const text = "---\ntags: [a]\nfragments:\n  - fragment: tone\n    with: { x: 1.10 }\n---\nBody\n"
    const texts = toTexts({
      "fragments/tone.md": "Be {{x}}\n",
      "prompts/Folder/first.md": text,
      "prompts/Folder/second.md": text
    })
    const { edit, changes } = importChanged(archive(), () => texts)
    const added = [...texts.keys()].map((path) => ["added", path])
    assert.deepStrictEqual<unknown>(summarize(changes), added)
    assert.deepStrictEqual(edit.folders, [{ id: edit.folders[0]!.id, name: "Folder" }])
    assert.deepStrictEqual(edit.tags, [tag("a", { id: edit.tags[0]!.id, color: "#808080" })])
    const { versions, created_at, updated_at, current_version } = edit.prompts[0]!
    assert.deepStrictEqual(versions, [importedVersion(edit, 1, "Body")])
    assert.deepStrictEqual([created_at, updated_at, current_version], [now, now, versions[0]!.version_number])
  })

  it("an import fails if a new or renamed prompt would get the name of another file's prompt", () => {
    const prompts = ["Support agent", "Other", "Twin", "twin"].map((title) => prompt({ title }))
    const source = archive({ prompts })
    const plan = (texts: Texts) => planFiles(source.workspace.id, toWorkspaceContent(source), texts, true)
    const texts = renderFiles(source)
    const copied = new Map([...texts, ["prompts/copy.md", "---\ntitle: SUPPORT agent!\n---\nText\n"]])
    const renamed = replaceIn("prompts/other.md", "title: Other", "title: Support Agent")(texts)
    const message = "has the name support-agent, like prompts/support-agent.md: change one of the titles"
    for (const [changed, path] of [
      [copied, "prompts/copy.md"],
      [renamed, "prompts/other.md"]
    ] as const)
      assert.deepStrictEqual(plan(changed), Result.fail(new InvalidFiles([{ path, message }])))
    const swapped = replaceIn("prompts/support-agent.md", "title: Support agent", "title: Agent")(renamed)
    for (const accepted of [texts, swapped]) assert.isTrue(Result.isSuccess(plan(accepted)))
  })

  it("an import archives a prompt without a file, even if no file ever described the prompt, and restores the prompt when its file exists again", () => {
    const source = archive({ prompts: [prompt({ title: "Gone", versions: [version(1)] })] })
    const [home, before] = [source.workspace.id, toWorkspaceContent(source)]
    const { changes, content } = importFiles(home, before, new Map())
    assert.deepStrictEqual(summarize(changes), [["archived", null]])
    const archived = before.prompts.map((prompt) => ({ ...prompt, is_archived: true, updated_at: now }))
    assert.deepStrictEqual(content.prompts, archived)
    const restored = importFiles(home, content, renderFiles(source))
    assert.deepStrictEqual(summarize(restored.changes), [["changed", "prompts/gone.md"]])
    assert.deepStrictEqual(restored.content.prompts, [{ ...before.prompts[0]!, updated_at: now }])
  })

  it("an import removes a fragment without a file if no archived prompt contains the fragment", () => {
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
})

describe("edits in the workspace", () => {
  const { home, texts, content } = makeImported({
    "fragments/tone.md": "Be {{x}}\n",
    "prompts/Support/agent.md":
      "---\ntags: [a]\nfragments:\n  - fragment: tone\n    with: { b: 1, a: { d: 1, c: 2 } }\n---\nAgent\n",
    "prompts/other.md": "---\nid: 6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51\n---\nOther\n"
  })
  const [agent, other] = ["agent", "other"].map(
    (title) => content.prompts.find((one) => one.title === title)!
  )
  const [tone] = content.fragments

  /** Returns the edits that an import refuses to undo, each with its path, or undefined if there are none. */
  const findConflicts = (edited: WorkspaceContent, changed = texts) =>
    Result.match(planFiles(home, edited, changed), {
      onSuccess: () => undefined,
      onFailure: (failure) =>
        failure._tag === "ConflictingEdits"
          ? failure.edits.map(({ path, message }) => `${path} ${message}`)
          : failure
    })

  const promptFields: ReadonlyArray<Partial<CurrentPrompt>> = [
    ...[{ title: "x" }, { description: "x" }, { current_content: "x" }, { prompt_type: "system" as const }],
    ...[{ target_model: "x" }, { intent: "x" }, { is_favorite: true }, { sort_order: 1 }],
    ...[{ tags: [] }, { fragments: [] }, { folder_id: null }]
  ]
  it.each<readonly [Partial<WorkspaceContent>, path: string]>([
    ...promptFields.map(
      (change) => [{ prompts: [{ ...agent!, ...change }, other!] }, "prompts/Support/agent.md"] as const
    ),
    [{ folders: [{ ...content.folders[0]!, name: "x" }] }, "prompts/Support/agent.md"],
    [{ fragments: [{ ...tone!, name: "x" }] }, "fragments/tone.md"],
    [{ fragments: [{ ...tone!, content: "x" }] }, "fragments/tone.md"]
  ])("an import refuses to undo an edit of any field: %j", (change, path) => {
    const edited = { ...content, ...change }
    assert.deepStrictEqual(findConflicts(edited), [`${path} was edited`])
    // Before the first import, no state is recorded, so no edit is a conflict.
    assert.isUndefined(findConflicts({ ...edited, importedStates: [] }))
  })

  it("an import refuses to undo an edit of a prompt or a fragment, but undoes the edit with overwrite", () => {
    assert.isUndefined(findConflicts(content))
    const edited = {
      ...content,
      fragments: [{ ...tone!, content: "x" }],
      prompts: [{ ...agent!, is_archived: true }]
    }
    assert.deepStrictEqual(findConflicts(edited), [
      "fragments/tone.md was edited",
      "prompts/Support/agent.md was archived",
      "prompts/other.md was deleted"
    ])
    const created = { ...other!, id: newId<PromptId>(), title: "new" }
    const renamed = { ...edited, prompts: [{ ...agent!, title: "x", fragments: [] }, other!, created] }
    assert.deepStrictEqual(findConflicts(renamed, toTexts({ "prompts/a.md": "A\n" })), [
      `fragment ${tone!.id} (tone) was edited`,
      `prompt ${agent!.id} (x) was edited`,
      `prompt ${created.id} (new) was created`
    ])
    const { content: after } = importFiles(home, edited, texts)
    const ids = after.prompts.map(({ id }) => id)
    assert.sameMembers(ids, [agent!.id, other!.id])
    assert.isUndefined(findConflicts(after))
  })

  it("after an import without files, the next import can change a remaining fragment, but refuses to archive a new prompt", () => {
    const { content: kept } = importFiles(home, content, new Map())
    assert.isUndefined(findConflicts(kept, replaceIn("fragments/tone.md", "Be", "Do")(texts)))
    const { content: empty } = importFiles(home, { ...content, fragments: [], prompts: [] }, new Map())
    const created = `prompt ${other!.id} (other) was created`
    assert.deepStrictEqual(findConflicts({ ...empty, prompts: [other!] }, new Map()), [created])
  })

  it("an import reports no conflict with an edit that its files already contain, and records the edited state", () => {
    const edited = { ...content, prompts: [agent!, { ...other!, current_content: "Edited" }] }
    const merged = replaceIn("prompts/other.md", "Other", "Edited")(texts)
    assert.isUndefined(findConflicts(edited, merged))
    const { edit, content: after } = importFiles(home, edited, merged)
    assert.isTrue(isEmptyEdit(edit))
    assert.isUndefined(findConflicts(after))
  })
})

describe("the warnings of an import", () => {
  it.each([
    ["{tone: kind, language: English}", []],
    [
      "{tonee: kind, language: English}",
      [
        "binds tonee, which is no slot of fragments/a/tone.md",
        "does not bind the slot {{tone}} of fragments/a/tone.md"
      ]
    ],
    // An override that is an object does not bind its slot.
    ["{tone: {}, language: 1.10}", ["does not bind the slot {{tone}} of fragments/a/tone.md"]]
  ])(
    "an import warns about each binding that names no slot, and about each slot without a binding: %s",
    (bindings, messages) => {
      const texts = toTexts({
        "fragments/a/tone.md": "Write in a {{tone}} tone, in {{ language }}. {{ }} {{{{",
        "prompts/agent.md": `---\nfragments:\n  - fragment: a/tone\n    with: ${bindings}\n---\n{{own}}\n`
      })
      assert.deepStrictEqual(
        importFiles(newId(), toWorkspaceContent(archive()), texts).warnings,
        messages.map((message) => ({ path: "prompts/agent.md", message }))
      )
    }
  )

  it("an import warns about each new file without an id that looks like a moved prompt or fragment", () => {
    const { home, content } = makeImported({
      "prompts/agent.md": "Agent\n",
      "prompts/other.md": "---\ntitle: Other\n---\nOther\n",
      "fragments/tone.md": "Tone\n"
    })
    const findId = (title: string) => content.prompts.find((one) => one.title === title)!.id
    const importMoved = (files: Record<string, string>) => importFiles(home, content, toTexts(files))
    const { warnings } = importMoved({
      "prompts/Support/agent2.md": "Agent\n",
      "prompts/new.md": "---\ntitle: Other\n---\nChanged\n",
      "fragments/style/tone.md": "Tone\n"
    })
    assert.deepStrictEqual(
      warnings.map(({ path, message }) => [path, message.split(":")[0]]),
      [
        ["fragments/style/tone.md", `looks like a move of fragment ${content.fragments[0]!.id} (tone)`],
        ["prompts/Support/agent2.md", `looks like a move of prompt ${findId("agent")} (agent)`],
        ["prompts/new.md", `looks like a move of prompt ${findId("Other")} (Other)`]
      ]
    )
    // An import does not warn about a copy, a file with an id or an unrelated file.
    const copies = {
      "prompts/agent.md": "Agent\n",
      "prompts/agent2.md": "Agent\n",
      "prompts/new.md": `---\nid: ${newId()}\ntitle: Other\n---\nOther\n`,
      "fragments/new.md": "New\n"
    }
    assert.deepStrictEqual(importMoved(copies).warnings, [])
  })
})
