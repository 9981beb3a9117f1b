import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TextDiff from "effect/TextDiff"
import { planExport } from "../../../src/application/transfer/FileExport.ts"
import type { Texts } from "../../../src/application/transfer/PromptFile.ts"
import type { PromptId } from "../../../src/domain/Prompt.ts"
import { emptySlug, toSlug } from "../../../src/domain/PromptName.ts"
import type { WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import {
  type CurrentPrompt,
  isEmptyEdit,
  type WorkspaceContent
} from "../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  archives,
  folder,
  fragment,
  fragmentBinding,
  newId,
  prompt,
  shareIds,
  texts,
  toWorkspaceContent
} from "../../support/archives.ts"
import { exportFiles, importFiles, makeImported, renderFiles } from "../../support/promptFiles.ts"

const natural = Arbitrary.schema(Schema.Natural)
const naturals = Arbitrary.array(natural, { maxLength: 6 })

/** Archives whose files an empty workspace can import: no slug occurs twice, except the slug of empty titles. */
const archivesWithNames = Arbitrary.map(archives, (archive) => {
  const toKey = ({ id, title }: WorkspacePrompt) => (toSlug(title) === emptySlug ? id : toSlug(title))
  return { ...archive, prompts: [...new Map(archive.prompts.map((one) => [toKey(one), one])).values()] }
})

/** Changes the formatting of texts, but not the prompts that they describe. Removes the id from some of the texts. */
const reformat = (texts: Texts, picks: ReadonlyArray<number>): Texts =>
  new Map(
    [...texts].map(([path, text], index) => {
      switch (picks[index % Math.max(1, picks.length)]! % 5) {
        case 1:
          return [path, text.replace("---\n", "---\n# A comment\n")]
        case 2:
          return [path, text.includes("\r") ? text : text.replaceAll("\n", "\r\n")]
        case 3:
          return [path, text.replace(/^---\n(id: .*\n)([^ ].*\n)(?=[^ ])/, "---\n$2$1")]
        case 4:
          return [path, text.replace(/^id: .*\n/m, "")]
        default:
          return [path, text]
      }
    })
  )

type PromptChange = Partial<CurrentPrompt>

/** Changes each prompt whose content is a key of `changes`. */
const editPrompts = (
  content: WorkspaceContent,
  changes: Readonly<Record<string, PromptChange>>
): WorkspaceContent => ({
  ...content,
  prompts: content.prompts.map((prompt) => ({ ...prompt, ...changes[prompt.current_content] }))
})

const deletePrompts = (content: WorkspaceContent, ...contents: ReadonlyArray<string>): WorkspaceContent => ({
  ...content,
  prompts: content.prompts.filter(({ current_content }) => !contents.includes(current_content))
})

/** Plans an export. Returns the paths that the export refuses to replace or remove, or the planned changes. */
const plan = (workspace: WorkspaceId, content: WorkspaceContent, texts: Texts, overwrite = false) =>
  Result.match(planExport(workspace, content, texts, overwrite), {
    onSuccess: ({ textsToWrite, pathsToRemove }) => ({
      written: Object.fromEntries(textsToWrite),
      removed: pathsToRemove
    }),
    onFailure: (failure) => (failure._tag === "UnimportedFiles" ? failure.paths : failure.problems)
  })

const nothing = { written: {}, removed: [] }

/** Folder names that are hard to express as paths, such as names that differ only in case. */
const awkwardNames = [
  ...["", "agent.md", "Agent.MD", "agent.md/inner.md", "agent", "AGENT", "A/b", "a/c", "/", "//a", "."],
  ...["../../..", "a b ", "con:*?", "%41", "é", "e\u0301", "\u0085".repeat(200), `${"日".repeat(255)}本`],
  ...[`${"語".repeat(100)}/${"本".repeat(100)}`, "😀".repeat(256), "a/".repeat(127)]
]

const awkwardArchives = Arbitrary.map(
  Arbitrary.all({
    folders: Arbitrary.array(Arbitrary.all([natural, texts]), { maxLength: 8 }),
    prompts: Arbitrary.array(Arbitrary.all([natural, natural]), { maxLength: 12 })
  }),
  (plan) => {
    const folders = plan.folders.map(([choice, text]) =>
      folder({ name: awkwardNames[choice % (awkwardNames.length + 3)] ?? [...text].slice(0, 256).join("") })
    )
    const titles = ["agent", "Agent", "inner", "a", "b", "", "日".repeat(256), "İ".repeat(60)]
    const prompts = plan.prompts.map(([title, at]) =>
      prompt({
        title: titles[title % titles.length]!,
        folder_id: folders[at % (folders.length + 1)]?.id ?? null
      })
    )
    return archive({ folders, prompts })
  }
)

it.prop(
  "an export changes no file after an import, and an import changes no row after an export",
  { source: archivesWithNames, target: archivesWithNames, picks: naturals },
  ({ source, target, picks }) => {
    const texts = reformat(renderFiles(source), picks)
    const home = source.workspace.id
    const { content: imported } = importFiles(home, toWorkspaceContent(source), texts)
    assert.deepStrictEqual(plan(home, imported, texts), nothing)
    const later = toWorkspaceContent(target, imported.importedStates)
    const edited = shareIds(later, imported, picks.length % 4)
    const updated = exportFiles(home, edited, texts)
    const { edit, content } = importFiles(home, edited, updated)
    assert.isTrue(isEmptyEdit(edit))
    assert.deepStrictEqual(plan(home, content, updated), nothing)
  }
)

it.prop(
  "whatever the folders and titles, the exported paths are valid on every file system and describe the same prompts",
  { source: awkwardArchives },
  ({ source }) => {
    const written = renderFiles(source)
    assert.deepStrictEqual(plan(source.workspace.id, toWorkspaceContent(source), written), nothing)
    const folded = [...written.keys()].map((path) => path.normalize("NFC").toLowerCase())
    assert.strictEqual(new Set(folded).size, folded.length)
    const isDirectory = (path: string) => folded.some((other) => other.startsWith(`${path}/`))
    assert.deepStrictEqual(folded.filter(isDirectory), [])
    const isRejected = (segment: string) =>
      /^\.|^$|[. ]$|^(?:con|prn|aux|nul|(?:com|lpt)[\d¹²³]) *(?:\.|$)|[\\:*?"<>|\p{Cc}]/u.test(segment)
    assert.deepStrictEqual(folded.flatMap((path) => path.split("/")).filter(isRejected), [])
  }
)

it("the front matter contains the folder's name only if the path cannot express the name", () => {
  const folders = ["Support", "a/b c", "/", "日".repeat(61), ".x:", "%41", "Agent.md", "Aux"].map((name) =>
    folder({ name })
  )
  const prompts = folders.map(({ id }) => prompt({ title: "Agent", folder_id: id }))
  const texts = renderFiles(archive({ folders, prompts }))
  assert.deepStrictEqual(
    [...texts].map(([path, text]) => [path, /^folder: .*$/m.exec(text)?.[0]]),
    [
      ["prompts/41/agent.md", 'folder: "%41"'],
      ["prompts/Support/agent.md", undefined],
      ["prompts/a/b c/agent.md", undefined],
      ["prompts/agent-md/agent.md", "folder: Agent.md"],
      ["prompts/aux-file/agent.md", "folder: Aux"],
      ["prompts/untitled/agent.md", "folder: /"],
      ["prompts/x/agent.md", 'folder: ".x:"'],
      [`prompts/${"日".repeat(50)}/agent.md`, `folder: ${"日".repeat(61)}`]
    ]
  )
})

/**
 * Returns the text of a file after an edit of its prompt and an export. Checks that the text describes the edited
 * prompt.
 */
const exportEdit = (text: string, edit: PromptChange, path = "prompts/a.md"): string => {
  const { home, content, texts } = makeImported({ [path]: text, "fragments/tone.md": "Be {{x}}" })
  const edited = editPrompts(content, { [content.prompts[0]!.current_content]: edit })
  const updated = exportFiles(home, edited, texts)
  assert.deepStrictEqual(plan(home, edited, updated), nothing)
  return updated.get(path)!
}

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
const edits: Readonly<Record<string, PromptChange>> = {
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
  "planExport keeps a byte order mark, and changes only the lines of keys that differ, whatever the style, order and line endings of the file",
  { picks: Arbitrary.array(natural, { minLength: 40, maxLength: 40 }) },
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
    const edit = Object.assign({}, ...edited.map(({ key }) => edits[key]))
    const updated = exportEdit(text, edit)
    const removed = TextDiff.lines(text, updated).flatMap(({ _tag, items }) =>
      _tag === "Delete" ? items.map((line) => line.replace(/\n$/, "")) : []
    )
    const editedLines = edited.flatMap(({ text }) => text.split("\n").slice(0, -1))
    assert.isEmpty(removed.filter((line) => !editedLines.includes(line)))
    assert.strictEqual(updated === text, edited.length === 0)
    const toWindows = (text: string) => `\ufeff${text.replaceAll("\n", "\r\n")}`
    assert.strictEqual(exportEdit(toWindows(text), edit), toWindows(updated))
  }
)

it.each<readonly [string, PromptChange, string]>([
  ["---\n---\na", { current_content: "b" }, "---\n---\nb"],
  ["Hello\n", { prompt_type: "system" }, "---\ntype: system\n---\nHello\n"],
  [
    "---\nmodel:   m # x\ntitle:   'A'   # y\n---\nHello\n",
    { title: "B", intent: "support", is_favorite: true, current_content: "Hello\n\nBye" },
    "---\nmodel:   m # x\ntitle: B   # y\nintent: support\nfavorite: true\n---\nHello\n\nBye\n"
  ],
  // The path of the file does not change.
  ["Hello\n", { folder_id: null }, "---\nfolder: null\n---\nHello\n"],
  // If the file had no front matter, an import would read this body as front matter.
  [
    "Hello\n",
    { current_content: "---\ntitle: x\n---\n" },
    "---\ntitle: a\ntype: user\n---\n---\ntitle: x\n---\n\n"
  ]
])(
  "planExport changes only the parts that differ, keeps comments, and adds front matter to plain Markdown only if necessary: %j, %j",
  (text, edit, expected) => {
    assert.strictEqual(exportEdit(text, edit, "prompts/Support/a.md"), expected)
  }
)

it("planExport plans a file with the id of each new prompt, and the removal of the files of archived and deleted prompts", () => {
  const { home, content, texts } = makeImported({
    "prompts/Support/agent.md": "Hello\n",
    "prompts/old.md": "Old\n",
    "prompts/deleted.md": "Deleted\n",
    "prompts/same.md": "Same\n"
  })
  const agent = content.prompts.find(({ current_content }) => current_content === "Hello")!
  const added = { ...agent, id: newId<PromptId>(), title: "Agent", current_content: "Added" }
  const kept = editPrompts(deletePrompts(content, "Deleted"), { Old: { is_archived: true } })
  const later = { ...kept, prompts: [...kept.prompts, added] }
  const path = `prompts/Support/agent-${added.id.slice(-8)}.md`
  assert.deepStrictEqual(plan(home, later, texts), {
    written: { [path]: `---\nid: ${added.id}\ntitle: Agent\ntype: user\n---\nAdded\n` },
    removed: ["prompts/deleted.md", "prompts/old.md"]
  })
})

it("unless overwrite is set, planExport refuses to replace or remove files that were edited since the import, and names all these files", () => {
  const files = ["fragments/e.md", ...["a", "b", "c", "d"].map((name) => `prompts/${name}.md`)]
  const { home, content, texts } = makeImported(
    Object.fromEntries(files.map((path) => [path, `${path.at(-4)!.toUpperCase()}\n`]))
  )
  const later = editPrompts(deletePrompts(content, "D"), {
    B: { current_content: "Edited" },
    C: { is_archived: true }
  })
  const edit = (...paths: ReadonlyArray<string>): Texts =>
    new Map([...texts, ...paths.map((path) => [path, "Changed\n"] as const)])
  const paths = [...files, "prompts/new.md"]
  for (const path of paths) assert.deepStrictEqual(plan(home, later, edit(path)), [path])
  const edited = edit(...paths)
  assert.deepStrictEqual(plan(home, later, edited), paths)
  assert.deepStrictEqual(plan(home, later, edited, true), {
    written: { "fragments/e.md": "E\n", "prompts/a.md": "A\n", "prompts/b.md": "Edited\n" },
    removed: ["prompts/c.md", "prompts/d.md", "prompts/new.md"]
  })
  // A file that already contains the edit of the workspace stays as it is.
  const merged = new Map([...texts, ["prompts/b.md", "Edited\n"]])
  assert.deepStrictEqual(plan(home, later, merged), {
    written: {},
    removed: ["prompts/c.md", "prompts/d.md"]
  })
})

it("for a fragment that only archived prompts use, planExport adds no file and removes none", () => {
  const [left, unused] = [fragment("left"), fragment("unused", { name: "Unused" })]
  const own = archive({
    fragments: [left, unused],
    prompts: [prompt({ is_archived: true, fragments: [fragmentBinding(left, 1)] })]
  })
  assert.deepStrictEqual([...renderFiles(own).keys()], ["fragments/unused.md"])

  const { home, content, texts } = makeImported({
    "prompts/a.md": "---\nfragments:\n  - fragment: tone\n---\nA\n",
    "fragments/tone.md": "Kind\n"
  })
  assert.deepStrictEqual(plan(home, editPrompts(content, { A: { is_archived: true } }), texts), {
    written: {},
    removed: ["prompts/a.md"]
  })
})
