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
  toWorkspaceContent
} from "../support/archives.ts"
import { makeTest } from "../support/makeTest.ts"
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

/** Removes the id from the front matter of some of the files. */
const withoutSomeIds = (texts: Texts, picks: ReadonlyArray<number>): Texts =>
  new Map(
    [...texts].map(([path, text], index) => [
      path,
      picks[index % Math.max(1, picks.length)]! % 2 === 1 ? text.replace(/^id: .*\n/m, "") : text
    ])
  )

const naturals = Arbitrary.array(Arbitrary.schema(Schema.Natural), { maxLength: 6 })

/** Tests the rules of imports and exports of files on one adapter of `WorkspaceStore`. */
export const testFileTransfer = <E>(name: string, store: Layer.Layer<WorkspaceStore, E>): void =>
  suite(Administration.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto), Layer.provideMerge(store)), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })(`imports and exports of files: ${name}`, (it) => {
    const test = makeTest(it.effect)
    it.effect.prop(
      "an import makes a workspace equal to the files, an export makes the files equal to the workspace, and repeating either changes nothing",
      { source: archivesWithNames, edited: archivesWithNames, picks: naturals },
      Effect.fnUntraced(function* ({ source, edited, picks }) {
        const { exportFiles } = yield* Administration
        const [{ archive: initial }, other] = [sample(), source]
        const home = initial.workspace.id
        for (const each of [initial, other]) yield* loadArchive(each)
        const [before, otherBefore] = [yield* exportArchive(home), yield* exportArchive(other.workspace.id)]
        const texts = withoutSomeIds(renderFiles(source), picks)
        const dry = yield* importTexts(home, texts, { dryRun: true })
        assert.deepStrictEqual(yield* exportArchive(home), before)
        const { changes } = yield* importTexts(home, texts)
        assert.deepStrictEqual(changes.length, dry.changes.length)
        const imported = yield* exportArchive(home)
        assertDescribes(imported, texts)
        assert.deepStrictEqual([imported.users, imported.api_keys], [before.users, before.api_keys])
        assert.deepStrictEqual(yield* exportArchive(other.workspace.id), otherBefore)
        // The ids that applications use stay the same.
        assert.deepStrictEqual((yield* importTexts(home, texts)).changes, [])
        assert.deepStrictEqual(yield* exportArchive(home), imported)
        const nothing = { textsToWrite: new Map(), pathsToRemove: [] }
        assert.deepStrictEqual(yield* exportFiles(home, texts), nothing)

        yield* loadArchive({ ...edited, workspace: initial.workspace, users: [], api_keys: [] })
        const editedBefore = yield* exportArchive(home)
        const { textsToWrite, pathsToRemove } = yield* exportFiles(home, texts)
        const updated = new Map([...texts, ...textsToWrite])
        for (const path of pathsToRemove) updated.delete(path)
        assert.deepStrictEqual((yield* importTexts(home, updated)).changes, [])
        assert.deepStrictEqual(yield* exportArchive(home), editedBefore)
        yield* importTexts(home, texts, { overwrite: true })
        const after = yield* exportArchive(home)
        assertDescribes(after, texts)
        assert.includeDeepMembers(
          [...after.folders, ...after.tags],
          [...editedBefore.folders, ...editedBefore.tags]
        )
      }),
      { arbitrary: { runs: 12, maxShrinks: 50 } }
    )

    test("an import of files fails and changes nothing if an imported prompt now belongs to another workspace, or if the workspace is unknown", function* () {
      const original = archive({ prompts: [prompt({ title: "A" }), prompt({ title: "B" })] })
      const home = original.workspace.id
      const texts = renderFiles(original)
      yield* loadArchive(original)
      yield* importTexts(home, texts)
      // The prompt moves to another workspace after the import.
      yield* loadArchive({ ...original, prompts: [original.prompts[0]!] })
      yield* loadArchive(archive({ prompts: [original.prompts[1]!] }))
      const before = yield* exportArchive(home)
      const problems = [{ path: "prompts/b.md", message: "id belongs to another workspace" }]
      for (const dryRun of [true, false])
        assert.deepStrictEqual(
          yield* Effect.flip(importTexts(home, texts, { dryRun, overwrite: true })),
          InvalidFiles(problems)
        )
      assert.deepStrictEqual(yield* exportArchive(home), before)
      const unknown = importTexts(newId<WorkspaceId>(), new Map())
      assert.deepStrictEqual(yield* Effect.flip(unknown), WorkspaceNotFound)
    })

    test("an import of files reports invalid files before it looks for the workspace", function* () {
      const texts = new Map([["prompts/a.md", "---\nwrong: 1\n---\n"]])
      const error = yield* Effect.flip(importTexts(newId<WorkspaceId>(), texts))
      assert.deepStrictEqual(error._tag, "InvalidFiles")
    })
  })
