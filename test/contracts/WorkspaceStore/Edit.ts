import { assert } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import type { WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import type { ImportedState } from "../../../src/domain/WorkspaceContent.ts"
import {
  archive,
  archives,
  exportArchive,
  folder,
  loadArchive,
  makeEdit,
  newId,
  shareIds,
  toWorkspaceContent,
  versionNumber,
  workspace
} from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { assertReads, type ContractTests, editContent, inExportOrder } from "./support.ts"

/** Replaces the items that have the id of a written item, and adds the other written items. */
const merge = <A extends { readonly id: string }>(items: ReadonlyArray<A>, written: ReadonlyArray<A>) => [
  ...new Map([...items, ...written].map((item) => [item.id, item])).values()
]

/**
 * Makes an edit that adds the content of another archive to a workspace. The first `count` prompts and fragments of the
 * archive replace the first ones of the workspace, and the edit removes all other fragments of the workspace. Returns
 * the edit and the edited archive.
 */
const makeAnyEdit = (before: Archive, other: Archive, count: number) => {
  const tags = other.tags.filter(({ name }) => !before.tags.some((tag) => tag.name === name))
  const allTags = [...before.tags, ...tags]
  const { fragments, prompts } = shareIds({ ...other, folders: [], tags: [] }, before, count)
  const removed = before.fragments.slice(count).map(({ id }) => id)
  const edited = prompts.map((prompt) => ({
    ...prompt,
    tags: prompt.tags.filter((tag) => allTags.some(({ id }) => id === tag)),
    versions: prompt.versions.map((version) => ({
      ...version,
      version_number: versionNumber(1_000 + version.version_number)
    }))
  }))
  const kept = before.prompts.map((prompt) => ({
    ...prompt,
    fragments: prompt.fragments.filter(({ fragment_id }) => !removed.includes(fragment_id))
  }))
  const addVersions = (prompt: WorkspacePrompt) => {
    const earlier = before.prompts.find(({ id }) => id === prompt.id)?.versions ?? []
    return { ...prompt, versions: [...earlier, ...prompt.versions] }
  }
  return {
    edit: { folders: other.folders, tags, fragments, removedFragments: removed, prompts: edited },
    after: {
      ...before,
      folders: [...before.folders, ...other.folders],
      tags: allTags,
      fragments: merge(before.fragments.slice(0, count), fragments),
      prompts: merge<WorkspacePrompt>(kept, edited.map(addVersions))
    }
  }
}

export const testEdit = (it: ContractTests): void => {
  const test = makeTest(it.effect)
  it.effect.prop(
    "editContent gives any workspace the content that the edit describes",
    { before: archives, other: archives, shared: Arbitrary.schema(Schema.Natural) },
    Effect.fnUntraced(function* ({ before, other, shared }) {
      const { readContent } = yield* WorkspaceStore
      const home = before.workspace.id
      yield* loadArchive(before)
      const { edit, after } = makeAnyEdit(before, other, shared % 4)
      yield* editContent(home, edit)
      assert.deepStrictEqual(yield* exportArchive(home), inExportOrder(after))
      assert.deepStrictEqual(yield* readContent(home), toWorkspaceContent(inExportOrder(after)))
      yield* assertReads(after)
    }),
    { arbitrary: { runs: 8, maxShrinks: 50 } }
  )

  test("editContent replaces the recorded states of its workspace, however many there are, and readContent returns the new states", function* () {
    const { readContent } = yield* WorkspaceStore
    const [home, other] = [archive(), archive()]
    for (const each of [home, other]) yield* loadArchive(each)
    const makeState = (): ImportedState => ({ kind: "prompt", id: newId(), hash: "0".repeat(64) })
    const readStates = Effect.map(readContent(home.workspace.id), ({ importedStates }) => importedStates)
    const replace = (importedStates: ReadonlyArray<ImportedState> | undefined, dryRun = false) =>
      editContent(home.workspace.id, { importedStates }, { dryRun })
    const [one, two] = [makeState(), makeState()]
    yield* replace([one, two, makeState()])
    // A prompt and a fragment can have the same id.
    const states = [{ ...one, hash: "f".repeat(64) }, two, { ...one, kind: "fragment" as const }]
    yield* replace(states, true)
    assert.lengthOf(yield* readStates, 3)
    yield* replace(states)
    yield* replace(undefined)
    // An archive contains no states, so an import keeps the recorded states.
    yield* loadArchive(home)
    assert.sameDeepMembers([...(yield* readStates)], states)
    assert.deepStrictEqual((yield* readContent(other.workspace.id)).importedStates, [])
    // Together, these states are larger than the maximum size of a row that the driver reads.
    yield* replace(Array.from({ length: 130_000 }, makeState))
    assert.lengthOf(yield* readStates, 130_000)
  })

  test("concurrent calls of editContent lose no edit, and each call returns the result of its edit", function* () {
    const store = yield* WorkspaceStore
    const home = workspace()
    yield* loadArchive(archive({ workspace: home }))
    const add = (name: string) =>
      store.editContent(home.id, ({ folders }) => {
        const exists = folders.some((folder) => folder.name === name)
        return Effect.succeed([makeEdit({ folders: exists ? [] : [folder({ name })] }), name] as const)
      })
    const names = ["a", "b", "c", "a", "b", "c"]
    assert.deepStrictEqual(yield* Effect.all(names.map(add), { concurrency: "unbounded" }), names)
    const { folders } = yield* exportArchive(home.id)
    assert.deepStrictEqual(folders.map(({ name }) => name).sort(), ["a", "b", "c"])
  })
}
