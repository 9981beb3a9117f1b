import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { diffLines } from "diff"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { planUpdate } from "../../../src/application/transfer/DirectoryUpdate.ts"
import { updateDirectory } from "../../../src/adapters/inbound/cli/files/PromptDirectory.ts"
import { assignPaths } from "../../../src/application/transfer/PromptPaths.ts"
import { parsePromptFiles } from "../../../src/application/transfer/PromptText.ts"
import { readItems } from "../../../src/application/transfer/ContentFile.ts"
import { applyFiles } from "../../../src/application/transfer/FileMerge.ts"
import { toImportedFiles } from "../../../src/application/transfer/FileRecords.ts"
import type { PromptId } from "../../../src/domain/Prompt.ts"
import type { WorkspaceContent } from "../../../src/domain/workspace/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { findPrompts, matchWith, renderFiles } from "../../adapters/inbound/cli/files/promptFiles.ts"
import {
  archive,
  archives,
  folder,
  fragment,
  instant,
  newId,
  prompt,
  tag,
  toWorkspaceContent,
  fragmentBinding
} from "../../support/archives.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

type Texts = ReadonlyMap<string, string>

const plan = (workspace: WorkspaceId, content: WorkspaceContent, texts: Texts) =>
  Result.getOrThrow(planUpdate(workspace, content, texts))

/** Returns the texts of a directory after an update. */
const applyUpdate = (workspace: WorkspaceId, content: WorkspaceContent, texts: Texts): Texts => {
  const { textsToWrite, pathsToRemove } = plan(workspace, content, texts)
  return new Map([...[...texts].filter(([path]) => !pathsToRemove.includes(path)), ...textsToWrite])
}

/** Returns the changes that an import of texts makes. */
const findChanges = (workspace: WorkspaceId, content: WorkspaceContent, texts: Texts) => {
  const files = matchWith(content)(Result.getOrThrow(parsePromptFiles(workspace, texts)))
  const context = { now: instant("2030-01-01T00:00:00.000Z"), newId }
  return applyFiles(content, readItems(content), files, context).changes
}

const naturals = Arbitrary.array(Arbitrary.schema(Schema.Natural), { maxLength: 6 })

/** Changes the comments, the line endings and the order of keys in texts, but not the prompts that they describe. */
const reformat = (texts: Texts, picks: ReadonlyArray<number>): Texts =>
  new Map(
    [...texts].map(([path, text], index) => {
      switch (picks[index % Math.max(1, picks.length)]! % 4) {
        case 1:
          return [path, text.replace("---\n", "---\n# A comment\n")]
        case 2:
          return [path, text.includes("\r") ? text : text.replaceAll("\n", "\r\n")]
        case 3:
          return [path, text.replace(/^---\n(id: .*\n)([^ ].*\n)(?=[^ ])/, "---\n$2$1")]
        default:
          return [path, text]
      }
    })
  )

describe("planUpdate", () => {
  it.prop(
    "planUpdate plans no change if the directory describes the workspace, however the files are formatted",
    { source: archives, picks: naturals },
    ({ source, picks }) => {
      const content = toWorkspaceContent(source)
      const texts = reformat(renderFiles(assignPaths(source)), picks)
      const { files: _, ...changes } = plan(source.workspace.id, content, texts)
      assert.deepStrictEqual(changes, {
        textsToWrite: new Map(),
        pathsToRemove: [],
        pending: [],
        conflicts: []
      })
    }
  )

  it.prop(
    "the plan of planUpdate brings an imported directory to any later state of its workspace, and importing the result changes nothing",
    { source: archives, target: archives, picks: naturals },
    ({ source, target, picks }) => {
      // Some prompts and fragments are in both workspaces, with different states.
      const shared = picks.length % 4
      const targetFragments = target.fragments.map((fragment, index) => ({
        ...fragment,
        id: index < shared ? (source.fragments[index]?.id ?? fragment.id) : fragment.id
      }))
      const fragmentIds = new Map(target.fragments.map(({ id }, index) => [id, targetFragments[index]!.id]))
      const edited = {
        ...target,
        workspace: source.workspace,
        fragments: targetFragments,
        prompts: target.prompts.map((prompt, index) => ({
          ...prompt,
          id: index < shared ? (source.prompts[index]?.id ?? prompt.id) : prompt.id,
          fragments: prompt.fragments.map((binding) => ({
            ...binding,
            fragment_id: fragmentIds.get(binding.fragment_id)!
          }))
        }))
      }
      const texts = reformat(renderFiles(assignPaths(source)), picks)
      const home = source.workspace.id
      const imported = toImportedFiles(matchWith(source)(Result.getOrThrow(parsePromptFiles(home, texts))))
      const content = toWorkspaceContent(edited, imported)
      assert.deepStrictEqual(plan(home, content, texts).conflicts, [])
      const updated = applyUpdate(home, content, texts)
      assert.deepStrictEqual(findChanges(home, content, updated), [])
      assert.deepStrictEqual(applyUpdate(home, content, updated), updated)
    }
  )

  /** Makes a workspace that was imported from texts. */
  const importTexts = (texts: Record<string, string>) => {
    const home = newId<WorkspaceId>()
    const files = Result.getOrThrow(parsePromptFiles(home, new Map(Object.entries(texts))))
    const prompts = findPrompts(files)
    const folders = [...new Set(prompts.map(({ state }) => state.folder))].flatMap((name) =>
      name === null ? [] : [folder({ name })]
    )
    const tags = [...new Set(prompts.flatMap(({ state }) => state.tags))].map((name) => tag(name))
    const own = archive({
      folders,
      tags,
      fragments: files.flatMap(({ id, state }) =>
        state.kind === "fragment" ? [{ id, name: state.name, content: state.content }] : []
      ),
      prompts: prompts.map(({ id, state: { kind: _, folder, ...fields } }) =>
        prompt({
          ...fields,
          id: id as PromptId,
          folder_id: folders.find(({ name }) => name === folder)?.id ?? null,
          tags: fields.tags.map((name) => tags.find((tag) => tag.name === name)!.id),
          fragments: fields.fragments.map((binding, index) =>
            fragmentBinding({ id: binding.fragment_id, name: "", content: "" }, index, binding)
          )
        })
      )
    })
    return { home, own, imported: toImportedFiles(files), texts: new Map(Object.entries(texts)) }
  }

  /** Returns the text that an update writes to `path` after an edit of the prompt, or `undefined` if it writes none. */
  const writeAfterEdit = (text: string, edit: Parameters<typeof prompt>[0], path = "prompts/a.md") => {
    const { home, own, imported, texts } = importTexts({ [path]: text, "fragments/tone.md": "Be {{x}}" })
    const [first, ...others] = own.prompts
    const edited = { ...own, prompts: [{ ...first!, ...edit }, ...others] }
    const { textsToWrite } = plan(home, toWorkspaceContent(edited, imported), texts)
    return Object.fromEntries(textsToWrite)[path]
  }

  const formatted = `---
# Who owns this prompt: the shop team
title:   "Support agent"   # shown in the editor
tags: [production,  draft]
model: gpt-4o
fragments:
- {fragment: tone, with: {x: 1.10}}  # a flow mapping
description: >-
  Answers
  customers
---
# Heading

Body
`

  it("in the text of a file, planUpdate changes only the keys and the body that differ, and keeps comments, order and style", () => {
    assert.strictEqual(
      writeAfterEdit(formatted, { title: "Agent" }),
      formatted.replace('"Support agent"', "Agent").replace("title:   ", "title: ")
    )
    assert.strictEqual(writeAfterEdit(formatted, { tags: [] }), formatted.replace(/^tags: .*\n/m, ""))
    assert.strictEqual(
      writeAfterEdit(formatted, { description: "Other" }),
      formatted.replace("description: >-\n  Answers\n  customers", "description: Other")
    )
    assert.strictEqual(
      writeAfterEdit(formatted, { intent: "support", is_favorite: true }),
      formatted.replace("---\n# Heading", "intent: support\nfavorite: true\n---\n# Heading")
    )
    assert.strictEqual(
      writeAfterEdit(formatted, { current_content: "# Heading\n\nBody\n\nMore" }),
      `${formatted}\nMore\n`
    )
    assert.strictEqual(writeAfterEdit(formatted, { is_archived: false }), undefined)
  })

  /** The front matter of a prompt as people write it: each key in several styles, without and with comments. */
  const styles: Readonly<Record<string, ReadonlyArray<string>>> = {
    title: ["title: Agent", "title:   'Agent'  # a name", '"title": "Agent"'],
    description: [
      "description: >-\n  Answers\n  all",
      "description: |-\n  Answers all",
      "description: Answers all # x"
    ],
    type: ["type:  system", "type: system   # role"],
    model: ["model: gpt-4o", 'model: "gpt-4o"'],
    intent: ["intent: support", "intent:\n  support"],
    tags: ["tags: [draft,  shop]", "tags:\n- draft # one\n- shop", "tags:\n    - draft\n\n    - shop"],
    favorite: ["favorite: true", "favorite:   true #"],
    sort_order: ["sort_order: 0x10", "sort_order: 16  # late"],
    fragments: [
      "fragments: [{fragment: tone, with: {x: 1.10}}]",
      "fragments:\n  # the tone\n  - fragment: tone # x\n    with: { x: 1.10 }"
    ]
  }
  const separators = ["", "# A comment\n", "\n", "\n\n#no space\n   # indented\n"]
  const edits: Readonly<Record<string, Parameters<typeof prompt>[0]>> = {
    title: { title: "Other: title" },
    description: { description: "First\nsecond" },
    type: { prompt_type: "assistant" },
    model: { target_model: "" },
    intent: { intent: "# none" },
    tags: { tags: [] },
    favorite: { is_favorite: false },
    sort_order: { sort_order: 7 },
    fragments: { fragments: [] }
  }

  it.prop(
    "in the front matter of a file, planUpdate changes only lines of keys that differ, whatever the style and the order of the keys",
    { picks: Arbitrary.array(Arbitrary.schema(Schema.Natural), { minLength: 40, maxLength: 40 }) },
    ({ picks }) => {
      const keys = Object.keys(styles)
      for (const number of picks) keys.push(...keys.splice(number % keys.length, 1))
      const choose = <A>(items: ReadonlyArray<A>, index: number): A => items[picks[index]! % items.length]!
      const entries = keys.map((key, index) => ({
        key,
        text: `${choose(styles[key]!, index)}\n`,
        separator: choose(separators, index + 10),
        isEdited: choose([false, false, true], index + 20)
      }))
      const text = `---\n${entries.map(({ separator, text }) => separator + text).join("")}# The end\n---\nBody\n`
      const edited = entries.filter(({ isEdited }) => isEdited)
      const updated = writeAfterEdit(text, Object.assign({}, ...edited.map(({ key }) => edits[key]))) ?? text
      const removed = diffLines(text, updated).flatMap((part) =>
        part.removed ? part.value.split("\n").slice(0, -1) : []
      )
      const editedLines = edited.flatMap(({ text }) => text.split("\n").slice(0, -1))
      assert.deepStrictEqual(
        removed.filter((line) => !editedLines.includes(line)),
        []
      )
      assert.strictEqual(updated === text, edited.length === 0)
    }
  )

  it("planUpdate keeps Windows line endings, byte order marks and a missing newline at the end", () => {
    const windows = `\ufeff${formatted.replaceAll("\n", "\r\n")}`
    assert.strictEqual(
      writeAfterEdit(windows, { intent: "x", current_content: "a\nb" }),
      windows.replace("---\r\n# Heading\r\n\r\nBody\r\n", "intent: x\r\n---\r\na\r\nb\r\n")
    )
    assert.strictEqual(writeAfterEdit("---\n---\na", { current_content: "b" }), "---\n---\nb")
  })

  it("planUpdate adds front matter to plain Markdown only if front matter is needed", () => {
    assert.strictEqual(writeAfterEdit("Hello\n", { current_content: "Bye" }), "Bye\n")
    assert.strictEqual(
      writeAfterEdit("Hello\n", { prompt_type: "system" }),
      "---\ntype: system\n---\nHello\n"
    )
    // Without front matter, this body would be read as front matter.
    assert.strictEqual(
      writeAfterEdit("Hello\n", { current_content: "---\ntitle: x\n---\n" }),
      "---\ntitle: a\ntype: user\n---\n---\ntitle: x\n---\n\n"
    )
  })

  it("after a prompt was moved to another folder, planUpdate keeps the path of the file and puts the folder into the front matter", () => {
    assert.strictEqual(
      writeAfterEdit("Hello\n", { folder_id: null }, "prompts/Support/a.md"),
      "---\nfolder: null\n---\nHello\n"
    )
  })

  it("planUpdate plans a new file for each new prompt and the removal of the files of deleted and archived prompts; for an empty directory, it plans the file of each active imported prompt at its recorded path", () => {
    const { home, own, imported, texts } = importTexts({
      "prompts/Support/Agent.md": "Hello\n",
      "prompts/old.md": "Old\n",
      "prompts/deleted.md": "Deleted\n",
      "prompts/gone.md": "Gone\n"
    })
    const find = (content: string) => own.prompts.find((prompt) => prompt.current_content === content)!
    const added = prompt({ title: "Agent", folder_id: own.folders[0]!.id, tags: [] })
    const content = toWorkspaceContent(
      {
        ...own,
        prompts: [find("Hello"), { ...find("Old"), is_archived: true }, find("Gone"), added]
      },
      imported
    )
    const present = new Map([...texts, ["prompts/mine.md", "Not imported yet\n"]])
    const { textsToWrite, pathsToRemove, pending, conflicts } = plan(home, content, present)
    assert.deepStrictEqual([...textsToWrite.keys()], [`prompts/Support/agent-${added.id.slice(-8)}.md`])
    assert.deepStrictEqual(
      [pathsToRemove, pending, conflicts],
      [["prompts/deleted.md", "prompts/old.md"], ["prompts/mine.md"], []]
    )
    // In an empty directory, an imported prompt gets its recorded path, and an id only if the imported file had an id.
    assert.deepStrictEqual(Object.fromEntries(plan(home, content, new Map()).textsToWrite), {
      "prompts/Support/Agent.md": "---\ntitle: Agent\ntype: user\n---\nHello\n",
      "prompts/gone.md": "---\ntitle: gone\ntype: user\n---\nGone\n",
      ...Object.fromEntries(textsToWrite)
    })
  })

  it("planUpdate plans no change to a file that was changed or deleted since the import, unless the prompt of the file was edited or deleted in the workspace", () => {
    const { home, own, imported, texts } = importTexts({
      "prompts/a.md": "A\n",
      "prompts/b.md": "B\n",
      "prompts/c.md": "C\n",
      "prompts/d.md": "D\n",
      "prompts/e.md": "E\n"
    })
    const content = toWorkspaceContent(
      {
        ...own,
        prompts: own.prompts
          .filter(({ current_content }) => current_content !== "E")
          .map((prompt) =>
            ["C", "D"].includes(prompt.current_content) ? { ...prompt, current_content: "Edited" } : prompt
          )
      },
      imported
    )
    const present = new Map([...texts, ["prompts/a.md", "Changed\n"], ["prompts/d.md", "Changed\n"]])
    present.set("prompts/e.md", "Changed\n")
    present.delete("prompts/b.md")
    const { files: _, ...changes } = plan(home, content, present)
    assert.deepStrictEqual(changes, {
      textsToWrite: new Map([
        ["prompts/c.md", "Edited\n"],
        ["prompts/d.md", "Edited\n"]
      ]),
      pathsToRemove: ["prompts/e.md"],
      pending: ["prompts/a.md", "prompts/b.md"],
      conflicts: ["prompts/d.md", "prompts/e.md"]
    })
    // If the file already contains the edit of the workspace, there is no conflict.
    present.set("prompts/d.md", "Edited\n")
    assert.deepStrictEqual(plan(home, content, present).conflicts, ["prompts/e.md"])
  })

  it("planUpdate plans no file for a fragment that has no file and that only archived prompts contain", () => {
    const [left, unused] = [fragment("left"), fragment("unused", { name: "Unused" })]
    const own = archive({
      fragments: [left, unused],
      prompts: [prompt({ is_archived: true, fragments: [fragmentBinding(left, 1)] })]
    })
    const { textsToWrite } = plan(own.workspace.id, toWorkspaceContent(own), new Map())
    assert.deepStrictEqual([...textsToWrite.keys()], ["fragments/unused.md"])
  })

  it("planUpdate plans no removal of the file of an imported fragment that only archived prompts contain", () => {
    const { home, own, imported, texts } = importTexts({
      "prompts/a.md": "---\nfragments:\n  - fragment: tone\n---\nA\n",
      "fragments/tone.md": "Kind\n"
    })
    const archived = { ...own, prompts: own.prompts.map((prompt) => ({ ...prompt, is_archived: true })) }
    const { pathsToRemove, pending } = plan(home, toWorkspaceContent(archived, imported), texts)
    assert.deepStrictEqual([pathsToRemove, pending], [["prompts/a.md"], []])
  })

  it("planUpdate gives a new prompt the recorded path of an archived prompt that has no file", () => {
    const { home, own, imported } = importTexts({ "prompts/agent.md": "Old\n" })
    const prompts = [
      ...own.prompts.map((prompt) => ({ ...prompt, is_archived: true })),
      prompt({ title: "Agent" })
    ]
    const { textsToWrite } = plan(home, toWorkspaceContent({ ...own, prompts }, imported), new Map())
    assert.deepStrictEqual([...textsToWrite.keys()], ["prompts/agent.md"])
  })

  it("planUpdate ignores records with a path that no prompt file can have", () => {
    const home = newId<WorkspaceId>()
    const one = prompt({ title: "One" })
    const record = (path: string) => ({
      kind: "prompt" as const,
      target_id: one.id,
      path,
      file_id: null,
      hash: "0".repeat(64)
    })
    for (const path of ["prompts/../../x.md", "/etc/x.md", "fragments/x.md", "prompts/.x.md", "prompts/x"]) {
      const content = toWorkspaceContent(archive({ prompts: [one] }), [record(path)])
      assert.deepStrictEqual([...plan(home, content, new Map()).textsToWrite.keys()], ["prompts/one.md"])
    }
  })

  it("planUpdate rejects a directory with invalid files", () => {
    const result = planUpdate(
      newId(),
      toWorkspaceContent(archive()),
      new Map([["prompts/a.md", "---\ntitel: x\n---\n"]])
    )
    assert.deepStrictEqual(Result.isFailure(result) && result.failure.problems, [
      { path: "prompts/a.md", message: "unknown key titel; did you mean title?" }
    ])
  })
})

describe("updateDirectory", () => {
  const root = makeTestDirectory("prompt-update-")

  it("updateDirectory writes and removes the given files, and changes no other file", async () => {
    const directory = join(root, "existing")
    const write = (path: string, text: string) => {
      mkdirSync(join(directory, dirname(path)), { recursive: true })
      writeFileSync(join(directory, path), text)
    }
    write("README.md", "readme")
    write("prompts/kept.md", "kept")
    write("prompts/a/b/removed.md", "removed")
    write("prompts/c/removed.md", "removed")
    write("prompts/c/notes.txt", "notes")
    const { ino, mtimeMs } = statSync(join(directory, "prompts/kept.md"))
    await Effect.runPromise(
      updateDirectory(
        directory,
        new Map([
          ["prompts/a.md", "new"],
          ["prompts/d/new.md", "new"],
          ["fragments/new.md", "new"]
        ]),
        ["prompts/a/b/removed.md", "prompts/c/removed.md"]
      )
    )
    assert.deepStrictEqual(readdirSync(directory, { recursive: true, encoding: "utf8" }).sort(), [
      "README.md",
      "fragments",
      "fragments/new.md",
      "prompts",
      "prompts/a",
      "prompts/a.md",
      "prompts/a/b",
      "prompts/c",
      "prompts/c/notes.txt",
      "prompts/d",
      "prompts/d/new.md",
      "prompts/kept.md"
    ])
    assert.deepStrictEqual(
      { ino, mtimeMs },
      {
        ino: statSync(join(directory, "prompts/kept.md")).ino,
        mtimeMs: statSync(join(directory, "prompts/kept.md")).mtimeMs
      }
    )
    assert.strictEqual(readFileSync(join(directory, "prompts/a.md"), "utf8"), "new")
  })

  it.each([
    ["a directory has the path of a file", "prompts/b.md/notes.txt"],
    ["a file has the path of a directory", "prompts/b"]
  ])("updateDirectory changes nothing if %s", async (_, obstacle) => {
    const directory = mkdtempSync(join(root, "obstacle-"))
    mkdirSync(join(directory, dirname(obstacle)), { recursive: true })
    writeFileSync(join(directory, obstacle), "notes")
    writeFileSync(join(directory, "prompts/removed.md"), "removed")
    const before = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort()
    const texts = new Map([
      ["prompts/a.md", "new"],
      ["prompts/b.md", "new"],
      ["prompts/b/c.md", "new"]
    ])
    const rejection = await Effect.runPromise(
      Effect.flip(updateDirectory(directory, texts, ["prompts/removed.md"]))
    )
    assert.match(rejection.message, /^cannot write .*(b\.md is a directory|ENOTDIR)/)
    assert.deepStrictEqual(readdirSync(directory, { recursive: true, encoding: "utf8" }).sort(), before)
  })
})
