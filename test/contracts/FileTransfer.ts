import { assert, layer as suite } from "@effect/vitest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Administration } from "../../src/application/Administration.ts"
import { WorkspaceNotFound, WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { InvalidFiles, type Texts } from "../../src/application/transfer/PromptFile.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import { archive, exportArchive, loadArchive, newId, prompt, sample } from "../support/archives.ts"
import { makeTest } from "../support/makeTest.ts"
import { renderFiles } from "../support/promptFiles.ts"

const importTexts = (
  workspace: WorkspaceId,
  texts: Texts,
  options?: { readonly overwrite?: boolean; readonly dryRun?: boolean }
) => Effect.flatMap(Administration, ({ importFiles }) => importFiles(workspace, texts, options))

/** Tests the rules of imports and exports of files on one adapter of `WorkspaceStore`. */
export const testFileTransfer = <E>(name: string, store: Layer.Layer<WorkspaceStore, E>): void =>
  suite(Administration.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto), Layer.provideMerge(store)), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })(`imports and exports of files: ${name}`, (it) => {
    const test = makeTest(it.effect)
    test("an import makes a workspace equal to the files, an export makes the files equal to the workspace, and a repeated import or export changes nothing", function* () {
      const { exportFiles } = yield* Administration
      const [{ archive: own }, { archive: other }] = [sample(), sample()]
      const home = own.workspace.id
      for (const each of [own, other]) yield* loadArchive(each)
      const readBoth = Effect.all([exportArchive(home), exportArchive(other.workspace.id)])
      const [before, otherBefore] = yield* readBoth
      const texts = renderFiles(other)
      const dry = yield* importTexts(home, texts, { dryRun: true })
      assert.deepStrictEqual(yield* readBoth, [before, otherBefore])
      const { changes } = yield* importTexts(home, texts)
      assert.strictEqual(changes.length, dry.changes.length)
      const [imported, otherAfter] = yield* readBoth
      const { users, api_keys } = before
      assert.deepStrictEqual([imported, otherAfter], [{ ...imported, users, api_keys }, otherBefore])
      assert.deepStrictEqual((yield* importTexts(home, texts)).changes, [])
      assert.deepStrictEqual(yield* exportArchive(home), imported)

      yield* loadArchive(own)
      const { textsToWrite, pathsToRemove } = yield* exportFiles(home, texts)
      assert.deepStrictEqual(pathsToRemove, [...texts.keys()].sort())
      assert.deepStrictEqual((yield* importTexts(home, textsToWrite)).changes, [])
      const nothing = { textsToWrite: new Map(), pathsToRemove: [] }
      assert.deepStrictEqual(yield* exportFiles(home, textsToWrite), nothing)
      assert.deepStrictEqual(yield* exportArchive(home), before)
    })

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
          new InvalidFiles(problems)
        )
      assert.deepStrictEqual(yield* exportArchive(home), before)
      const unknown = importTexts(newId<WorkspaceId>(), new Map())
      assert.deepStrictEqual(yield* Effect.flip(unknown), WorkspaceNotFound)
    })
  })
