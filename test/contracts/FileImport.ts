import { assert, layer as suite } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { renderFiles } from "../adapters/inbound/cli/files/promptFiles.ts"
import { assignPaths } from "../../src/application/transfer/PromptPaths.ts"
import { parsePromptFiles } from "../../src/application/transfer/PromptText.ts"
import { Administration } from "../../src/application/administration/Administration.ts"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import type { FileImport } from "../../src/application/administration/FileImports.ts"
import { type ContentFile, readItems } from "../../src/application/transfer/ContentFile.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { isJsonObject } from "../../src/domain/Json.ts"
import type { WorkspaceContent } from "../../src/domain/workspace/WorkspaceContent.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import {
  loadArchive,
  archive,
  archives,
  exportArchive,
  folder,
  fragment,
  prompt,
  sample,
  tag,
  fragmentBinding,
  version,
  workspace
} from "../support/archives.ts"

type Texts = ReadonlyMap<string, string>

const parse = (workspace: WorkspaceId, texts: Texts): ReadonlyArray<ContentFile> =>
  Result.getOrThrow(parsePromptFiles(workspace, texts))

const importTexts = (workspace: WorkspaceId, texts: Texts, options?: { readonly overwrite: boolean }) =>
  Effect.flatMap(Administration, ({ importFiles }) =>
    importFiles(workspace, parse(workspace, texts), options)
  )

/** Returns the JSON texts of items in sorted order, so that lists without a fixed order can be compared. */
const sorted = (items: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  items.map((item) => JSON.stringify(item)).sort()

/** Returns free-form JSON as text that does not depend on the order of members. */
const toText = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(toText)}]`
  if (!isJsonObject(value)) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${toText(member)}`)
    .sort()}}`
}

/** Returns the main fields of prompts and of their fragments, without ids, as sorted texts. */
const describeStates = (items: ReadonlyArray<Pick<ContentFile, "id" | "state">>): ReadonlyArray<string> => {
  const fragments = new Map(
    items.flatMap(({ id, state }) => (state.kind === "fragment" ? [[id, state]] : []))
  )
  return sorted(
    items.flatMap(({ state }) =>
      state.kind === "fragment"
        ? []
        : [
            [
              state.title,
              state.current_content,
              state.prompt_type,
              state.folder,
              state.tags,
              state.fragments.map(({ fragment_id, variable_overrides }) => [
                fragments.get(fragment_id),
                toText(variable_overrides)
              ])
            ]
          ]
    )
  )
}

/** Returns the main fields of the prompts of a workspace that are not archived, without ids, as sorted texts. */
const describeWorkspace = (archive: Archive) =>
  describeStates([...readItems(archive).values()].filter(({ isArchived }) => !isArchived))

const listIds = ({ prompts, fragments }: Archive): ReadonlyArray<string> => [
  ...prompts.filter(({ is_archived }) => !is_archived).map(({ id }) => id),
  ...fragments.map(({ id }) => id)
]

/** Removes the id from the front matter of some of the files. */
const withoutSomeIds = (texts: Texts, picks: ReadonlyArray<number>): Texts =>
  new Map(
    [...texts].map(([path, text], index) => [
      path,
      picks[index % Math.max(1, picks.length)]! % 2 === 1 ? text.replace(/^id: .*\n/m, "") : text
    ])
  )

const changeContents = (texts: Texts): Texts =>
  new Map([...texts].map(([path, text]) => [path, `${text}changed\n`]))

/** Imports files, and returns the path and the message of each edit that the import refuses to undo. */
const findEdits = (workspace: WorkspaceId, texts: Texts) =>
  Effect.map(Effect.flip(importTexts(workspace, texts)), (error) =>
    error._tag === "ConflictingEdits" ? error.edits.map(({ path, message }) => [path, message]) : error
  )

const naturals = Arbitrary.array(Arbitrary.schema(Schema.Natural), { maxLength: 6 })

/** Tests the rules of imports of files on one adapter of `WorkspaceStore`. */
export const testFileImport = <E>(name: string, store: Layer.Layer<WorkspaceStore, E>): void =>
  suite(Administration.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto), Layer.provideMerge(store)), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })(`imports of files: ${name}`, (it) => {
    it.effect.prop(
      "importing the same files into several workspaces, in any order, gives each workspace the same content and changes no other workspace",
      { source: archives, picks: naturals, order: naturals },
      Effect.fnUntraced(function* ({ source, picks, order }) {
        yield* loadArchive(source)
        const others = [workspace(), workspace()]
        for (const other of others) yield* loadArchive(archive({ workspace: other }))
        const workspaces = [source.workspace.id, ...others.map(({ id }) => id)]
        const texts = withoutSomeIds(renderFiles(assignPaths(source)), picks)
        const ids = new Map<WorkspaceId, ReadonlyArray<string>>()
        for (const number of order) {
          const id = workspaces[number % workspaces.length]!
          const untouched = workspaces.filter((other) => other !== id)
          const before = yield* Effect.forEach(untouched, exportArchive)
          const { changes } = yield* importTexts(id, texts)
          const after = yield* exportArchive(id)
          assert.deepStrictEqual(describeWorkspace(after), describeStates(parse(id, texts)))
          assert.deepStrictEqual(yield* Effect.forEach(untouched, exportArchive), before)
          // A repeated import changes nothing, so the ids that applications use stay the same.
          if (ids.has(id)) {
            assert.deepStrictEqual(changes, [])
            assert.deepStrictEqual(listIds(after), ids.get(id))
          }
          ids.set(id, listIds(after))
        }
        const all = [...ids.values()].flat()
        assert.strictEqual(new Set(all).size, all.length)
      }),
      { arbitrary: { runs: 10, maxShrinks: 50 } }
    )

    it.effect.prop(
      "an import never treats the result of an earlier import as an edit, and an import with overwrite undoes any edit",
      { source: archives, edited: archives },
      Effect.fnUntraced(function* ({ source, edited }) {
        const home = workspace()
        yield* loadArchive(archive({ workspace: home }))
        const texts = renderFiles(assignPaths(source))
        yield* importTexts(home.id, texts)
        const changed = changeContents(texts)
        yield* importTexts(home.id, changed)
        yield* loadArchive({ ...edited, workspace: home })
        yield* importTexts(home.id, changed, { overwrite: true })
        assert.deepStrictEqual(
          describeWorkspace(yield* exportArchive(home.id)),
          describeStates(parse(home.id, changed))
        )
      }),
      { arbitrary: { runs: 10, maxShrinks: 50 } }
    )

    /** Stores a workspace with two prompts, of which one has a folder, a tag and a fragment, and imports its files. */
    const importSample = Effect.gen(function* () {
      const [drawer, label, snippet] = [folder({ name: "Support" }), tag("production"), fragment("{{x}}")]
      const original = archive({
        folders: [drawer],
        tags: [label],
        fragments: [snippet],
        prompts: [
          prompt({
            title: "Agent",
            folder_id: drawer.id,
            tags: [label.id],
            fragments: [fragmentBinding(snippet, 1, { variable_overrides: { b: 1, a: { d: 1, c: 2 } } })],
            versions: [version(1)]
          }),
          prompt({ title: "Other", versions: [version(1)] })
        ]
      })
      yield* loadArchive(original)
      const texts = renderFiles(assignPaths(original))
      yield* importTexts(original.workspace.id, texts)
      return { original, texts, home: original.workspace.id }
    })

    it.effect("an import refuses to undo an edit of any field, and names every edited file", () =>
      Effect.gen(function* () {
        const { original, texts, home } = yield* importSample
        const [agent, other] = original.prompts
        const edits: ReadonlyArray<readonly [Partial<Archive>, path: string]> = [
          [{ prompts: [{ ...agent!, title: "x" }, other!] }, "prompts/Support/agent.md"],
          [{ prompts: [{ ...agent!, current_content: "x" }, other!] }, "prompts/Support/agent.md"],
          [{ prompts: [{ ...agent!, is_favorite: true }, other!] }, "prompts/Support/agent.md"],
          [{ prompts: [{ ...agent!, tags: [] }, other!] }, "prompts/Support/agent.md"],
          [{ prompts: [{ ...agent!, fragments: [] }, other!] }, "prompts/Support/agent.md"],
          [{ prompts: [{ ...agent!, folder_id: null }, other!] }, "prompts/Support/agent.md"],
          [{ folders: [{ ...original.folders[0]!, name: "x" }] }, "prompts/Support/agent.md"],
          [{ fragments: [{ ...original.fragments[0]!, content: "x" }] }, "fragments/fragment.md"]
        ]
        for (const [edit, path] of edits) {
          yield* loadArchive({ ...original, ...edit })
          assert.deepStrictEqual(yield* findEdits(home, texts), [[path, "was edited"]])
        }
        yield* loadArchive({
          ...original,
          fragments: [{ ...original.fragments[0]!, content: "x" }],
          prompts: [{ ...agent!, is_archived: true }]
        })
        const before = yield* exportArchive(home)
        assert.deepStrictEqual(yield* findEdits(home, texts), [
          ["fragments/fragment.md", "was edited"],
          ["prompts/Support/agent.md", "was archived"],
          ["prompts/other.md", "was deleted"]
        ])
        assert.deepStrictEqual(yield* exportArchive(home), before)
        yield* importTexts(home, texts, { overwrite: true })
        assert.deepStrictEqual(
          describeWorkspace(yield* exportArchive(home)),
          describeStates(parse(home, texts))
        )
      })
    )

    it.effect("an import refuses to archive an edited prompt and to remove an edited fragment", () =>
      Effect.gen(function* () {
        const { original, texts, home } = yield* importSample
        const [agent, other] = original.prompts
        yield* loadArchive({
          ...original,
          fragments: [{ ...original.fragments[0]!, content: "x" }],
          prompts: [{ ...agent!, title: "x" }, other!]
        })
        const withoutAgent = new Map([...texts].filter(([path]) => path === "prompts/other.md"))
        assert.deepStrictEqual(yield* findEdits(home, withoutAgent), [
          ["prompts/Support/agent.md", "was edited"]
        ])
        const withoutFragment = {
          ...original,
          fragments: [],
          prompts: [{ ...agent!, fragments: [] }, other!]
        }
        assert.deepStrictEqual(yield* findEdits(home, renderFiles(assignPaths(withoutFragment))), [
          ["prompts/Support/agent.md", "was edited"],
          ["fragments/fragment.md", "was edited"]
        ])
      })
    )

    it.effect(
      "an import reports no conflict with edits that its files contain, and none with edits from before the first import",
      () =>
        Effect.gen(function* () {
          const { original, texts, home } = yield* importSample
          const edited: Archive = {
            ...original,
            prompts: original.prompts.map((prompt) => ({ ...prompt, current_content: "Edited" }))
          }
          yield* loadArchive(edited)
          const exported = renderFiles(assignPaths(edited))
          assert.deepStrictEqual((yield* importTexts(home, exported)).changes, [])
          const { changes } = yield* importTexts(home, changeContents(exported))
          assert.strictEqual(changes.length, texts.size)

          const first = sample().archive
          yield* loadArchive(first)
          const { changes: firstChanges }: FileImport = yield* importTexts(
            first.workspace.id,
            changeContents(renderFiles(assignPaths(first)))
          )
          assert.isAbove(firstChanges.length, 0)
        })
    )

    it.effect("after recordFiles, an import reports no conflict with edits from before recordFiles", () =>
      Effect.gen(function* () {
        const { original, texts, home } = yield* importSample
        const { recordFiles, readContent } = yield* Administration
        const edited: Archive = {
          ...original,
          prompts: original.prompts.map((prompt) => ({ ...prompt, current_content: "Edited" }))
        }
        yield* loadArchive(edited)
        assert.deepStrictEqual(yield* findEdits(home, texts), [
          ["prompts/Support/agent.md", "was edited"],
          ["prompts/other.md", "was edited"]
        ])
        const content: WorkspaceContent = yield* readContent(home)
        yield* recordFiles(home, assignPaths(content, content.importedFiles))
        assert.deepStrictEqual(yield* readContent(home), {
          ...content,
          importedFiles: (yield* readContent(home)).importedFiles
        })
        assert.strictEqual((yield* importTexts(home, texts)).changes.length, 2)
      })
    )
  })
