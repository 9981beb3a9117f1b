import { assert, layer as suite } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Administration } from "../../src/application/administration/Administration.ts"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import { InvalidFiles, type Texts } from "../../src/application/transfer/PromptFile.ts"
import { WorkspaceNotFound, WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import {
  archive,
  archivesWithNames,
  exportArchive,
  loadArchive,
  newId,
  prompt,
  sample,
  toWorkspaceContent,
  workspace
} from "../support/archives.ts"
import { findDifferences, renderFiles } from "../support/promptFiles.ts"

const importTexts = (
  workspace: WorkspaceId,
  texts: Texts,
  options?: { readonly overwrite?: boolean; readonly dryRun?: boolean }
) => Effect.flatMap(Administration, ({ importFiles }) => importFiles(workspace, texts, options))

/** Fails unless the files describe a workspace. */
const assertDescribes = (stored: Archive, texts: Texts): void => {
  const differences = findDifferences(stored.workspace.id, toWorkspaceContent(stored), texts)
  // A fragment without a file stays if an archived prompt contains the fragment.
  assert.deepStrictEqual(
    differences.filter(({ kind, file }) => kind === "prompt" || file !== undefined),
    []
  )
}

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

const naturals = Arbitrary.array(Arbitrary.schema(Schema.Natural), { maxLength: 6 })

/** Tests the rules of imports and exports of files on one adapter of `WorkspaceStore`. */
export const testFileTransfer = <E>(name: string, store: Layer.Layer<WorkspaceStore, E>): void =>
  suite(Administration.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto), Layer.provideMerge(store)), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })(`imports and exports of files: ${name}`, (it) => {
    it.effect.prop(
      "importing the same files into several workspaces, in any order, gives each workspace the same content and changes no other workspace",
      { source: archivesWithNames, picks: naturals, order: naturals },
      Effect.fnUntraced(function* ({ source, picks, order }) {
        yield* loadArchive(source)
        const others = [workspace(), workspace()]
        for (const other of others) yield* loadArchive(archive({ workspace: other }))
        const workspaces = [source.workspace.id, ...others.map(({ id }) => id)]
        const texts = withoutSomeIds(renderFiles(source), picks)
        const ids = new Map<WorkspaceId, ReadonlyArray<string>>()
        for (const number of order) {
          const id = workspaces[number % workspaces.length]!
          const untouched = workspaces.filter((other) => other !== id)
          const before = yield* Effect.forEach(untouched, exportArchive)
          const { changes } = yield* importTexts(id, texts)
          const after = yield* exportArchive(id)
          assertDescribes(after, texts)
          assert.deepStrictEqual(yield* Effect.forEach(untouched, exportArchive), before)
          // A repeated import changes nothing, so the ids that applications use stay the same.
          if (ids.has(id)) {
            assert.deepStrictEqual(changes, [])
            assert.deepStrictEqual(listIds(after), ids.get(id))
          }
          ids.set(id, listIds(after))
        }
      }),
      { arbitrary: { runs: 10, maxShrinks: 50 } }
    )

    it.effect.prop(
      "an export after an import changes no file, and an import after an export changes no row",
      { source: archivesWithNames, edited: archivesWithNames, picks: naturals },
      Effect.fnUntraced(function* ({ source, edited, picks }) {
        const { exportFiles } = yield* Administration
        const home = workspace()
        yield* loadArchive(archive({ workspace: home }))
        const texts = withoutSomeIds(renderFiles(source), picks)
        const dry = yield* importTexts(home.id, texts, { dryRun: true })
        assert.deepStrictEqual((yield* exportArchive(home.id)).prompts, [])
        assert.strictEqual(dry.changes.length, (yield* importTexts(home.id, texts)).changes.length)
        assert.deepStrictEqual(yield* exportFiles(home.id, texts), {
          textsToWrite: new Map(),
          pathsToRemove: []
        })
        yield* loadArchive({ ...edited, workspace: home })
        const before = yield* exportArchive(home.id)
        const { textsToWrite, pathsToRemove } = yield* exportFiles(home.id, texts)
        const updated = new Map([...texts, ...textsToWrite])
        for (const path of pathsToRemove) updated.delete(path)
        assert.deepStrictEqual((yield* importTexts(home.id, updated)).changes, [])
        assert.deepStrictEqual(yield* exportArchive(home.id), before)
      }),
      { arbitrary: { runs: 10, maxShrinks: 50 } }
    )

    it.effect.prop(
      "an import never treats the result of an earlier import as an edit, and an import with overwrite undoes any edit, but deletes no folders, tags, users and keys",
      { source: archivesWithNames, edited: archivesWithNames },
      Effect.fnUntraced(function* ({ source, edited }) {
        const home = workspace()
        yield* loadArchive(archive({ workspace: home }))
        const texts = renderFiles(source)
        yield* importTexts(home.id, texts)
        const changed = changeContents(texts)
        yield* importTexts(home.id, changed)
        yield* loadArchive({ ...edited, workspace: home, users: [], api_keys: [] })
        const before = yield* exportArchive(home.id)
        yield* importTexts(home.id, changed, { overwrite: true })
        const after = yield* exportArchive(home.id)
        assertDescribes(after, changed)
        assert.includeDeepMembers([...after.folders, ...after.tags], [...before.folders, ...before.tags])
      }),
      { arbitrary: { runs: 10, maxShrinks: 50 } }
    )

    it.effect("an import that fails because of edits changes nothing", () =>
      Effect.gen(function* () {
        const original = archive({ prompts: [prompt({ title: "A" }), prompt({ title: "B" })] })
        const home = original.workspace.id
        const texts = renderFiles(original)
        yield* loadArchive(original)
        yield* importTexts(home, texts)
        yield* loadArchive({ ...original, prompts: [{ ...original.prompts[0]!, is_archived: true }] })
        const before = yield* exportArchive(home)
        for (const dryRun of [true, false])
          assert.deepStrictEqual(yield* Effect.flip(importTexts(home, changeContents(texts), { dryRun })), {
            _tag: "ConflictingEdits",
            edits: [
              { path: "prompts/a.md", message: "was archived" },
              { path: "prompts/b.md", message: "was deleted" }
            ]
          })
        assert.deepStrictEqual(yield* exportArchive(home), before)
      })
    )

    it.effect("an import keeps the users and keys of the workspace", () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        yield* loadArchive(own)
        const before = yield* exportArchive(own.workspace.id)
        yield* importTexts(own.workspace.id, new Map())
        const { users, api_keys } = yield* exportArchive(own.workspace.id)
        assert.deepStrictEqual([users, api_keys], [before.users, before.api_keys])
      })
    )

    it.effect(
      "an import rejects two files of the same prompt and an id of another workspace, and names the path of the file",
      () =>
        Effect.gen(function* () {
          const mine = archive({ prompts: [prompt({ title: "A" })] })
          const home = mine.workspace.id
          yield* loadArchive(mine)
          const texts = renderFiles(mine)
          yield* importTexts(home, texts)
          const copied = new Map([...texts, ["prompts/b.md", texts.get("prompts/a.md")!]])
          assert.deepStrictEqual(
            yield* Effect.flip(importTexts(home, copied)),
            InvalidFiles([{ path: "prompts/b.md", message: "has the id of prompts/a.md" }])
          )
          // The prompt was moved to another workspace after the import.
          yield* loadArchive({ ...mine, prompts: [] })
          yield* loadArchive(archive({ prompts: mine.prompts }))
          assert.deepStrictEqual(
            yield* Effect.flip(importTexts(home, texts, { overwrite: true })),
            InvalidFiles([{ path: "prompts/a.md", message: "id belongs to another workspace" }])
          )
          assert.deepStrictEqual(
            yield* Effect.flip(importTexts(newId<WorkspaceId>(), new Map())),
            WorkspaceNotFound
          )
        })
    )
  })
