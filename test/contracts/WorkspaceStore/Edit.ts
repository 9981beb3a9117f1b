import { assert } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { WorkspaceNotFound, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import type { ContentEdit, ImportedState } from "../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  loadArchive,
  archive,
  archives,
  compareIds,
  exportArchive,
  folder,
  fragment,
  makeEdit,
  newId,
  toWorkspaceContent,
  fragmentBinding,
  version,
  workspace
} from "../../support/archives.ts"
import {
  type ContractTests,
  assertReads,
  editContent,
  foreignIdError,
  inExportOrder,
  makeOneOfEach
} from "./support.ts"

const naturals = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))

/**
 * Makes an edit of a stored workspace that adds the content of another archive, and rewrites or removes some of the
 * items. Returns the edit and the edited archive.
 */
const makeAnyEdit = (
  before: Archive,
  other: Archive,
  picks: ReadonlyArray<number>
): { readonly edit: ContentEdit; readonly after: Archive } => {
  const pick = (index: number): number => picks[index % Math.max(1, picks.length)] ?? 0
  const removed = before.fragments.filter((_, i) => pick(i) % 5 === 0).map(({ id }) => id)
  const rewritten = before.fragments
    .filter(({ id }, i) => !removed.includes(id) && pick(i + 1) % 2 === 0)
    .map((fragment) => ({ ...fragment, content: `${fragment.content}!` }))
  const tags = other.tags.filter(({ name }) => !before.tags.some((tag) => tag.name === name))
  const allTags = [...before.tags, ...tags].map(({ id }) => id)
  const folders = [...before.folders, ...other.folders]
  const fragments = [...before.fragments, ...other.fragments].filter(({ id }) => !removed.includes(id))

  const edited = before.prompts.map((prompt, i): WorkspacePrompt => {
    const uses = prompt.fragments.filter(({ fragment_id }) => !removed.includes(fragment_id))
    const added = fragments.slice(0, pick(i) % 4).map((of, n) => fragmentBinding(of, n))
    const last = Math.max(0, ...prompt.versions.map(({ version_number }) => version_number))
    return {
      ...prompt,
      title: `${prompt.title}!`,
      is_archived: pick(i + 1) % 2 === 0,
      folder_id: folders[pick(i)]?.id ?? null,
      tags: pick(i + 2) % 2 === 0 ? prompt.tags : allTags.filter((_, n) => pick(n + i) % 2 === 0),
      fragments: [...uses.slice(pick(i + 3) % 2), ...added],
      versions:
        pick(i + 4) % 2 === 0
          ? [version(last + 1, { parent_version_id: prompt.versions[0]?.id ?? null })]
          : []
    }
  })
  const isEdited = (index: number) => pick(index) % 3 > 0
  const added = other.prompts.map(
    (prompt): WorkspacePrompt => ({
      ...prompt,
      tags: prompt.tags.filter((id) => allTags.includes(id)),
      versions: prompt.versions.slice(0, 1).map((first) => ({ ...first, parent_version_id: null }))
    })
  )
  return {
    edit: {
      folders: other.folders,
      tags,
      fragments: [...rewritten, ...other.fragments],
      removedFragments: removed,
      prompts: [...edited.filter((_, index) => isEdited(index)), ...added]
    },
    after: {
      ...before,
      folders,
      tags: [...before.tags, ...tags],
      fragments: fragments.map((fragment) => rewritten.find(({ id }) => id === fragment.id) ?? fragment),
      prompts: [
        ...before.prompts.map((prompt, index) => ({
          ...prompt,
          fragments: prompt.fragments.filter(({ fragment_id }) => !removed.includes(fragment_id)),
          ...(isEdited(index)
            ? { ...edited[index]!, versions: [...prompt.versions, ...edited[index]!.versions] }
            : {})
        })),
        ...added
      ]
    }
  }
}

export const testEdit = (it: ContractTests): void => {
  it.effect.prop(
    "editContent gives any workspace the content that the edit describes",
    { before: archives, other: archives, picks: Arbitrary.array(naturals, { maxLength: 12 }) },
    Effect.fnUntraced(function* ({ before, other, picks }) {
      const { readContent } = yield* WorkspaceStore
      const home = before.workspace.id
      yield* loadArchive(before)
      const { edit, after } = makeAnyEdit(yield* exportArchive(home), other, picks)
      yield* editContent(home, edit)
      assert.deepStrictEqual(yield* exportArchive(home), inExportOrder(after))
      assert.deepStrictEqual(yield* readContent(home), toWorkspaceContent(inExportOrder(after)))
      yield* assertReads(after)
    }),
    { arbitrary: { runs: 8, maxShrinks: 50 } }
  )

  it.effect(
    "editContent returns the result of the edit, and changes nothing in a dry run or after a failure",
    () =>
      Effect.gen(function* () {
        const store = yield* WorkspaceStore
        const [own, other] = [makeOneOfEach(), makeOneOfEach()]
        const home = own.workspace.id
        for (const each of [own, other]) yield* loadArchive(each)
        const added = { folders: [folder({ name: "Added" })], fragments: [fragment("Added")] }
        const returnEdit = () => Effect.succeed([makeEdit(added), "edited"] as const)
        assert.strictEqual(yield* store.editContent(home, returnEdit, { dryRun: true }), "edited")
        assert.strictEqual(yield* Effect.flip(store.editContent(home, () => Effect.fail("no"))), "no")
        const [mine, theirs] = [{ ...own.prompts[0]!, versions: [] }, other.prompts[0]!]
        const rejected: ReadonlyArray<readonly [Partial<ContentEdit>, path: string]> = [
          [{ folders: [...added.folders, ...other.folders] }, "folders[1].id"],
          [{ prompts: [{ ...mine, id: theirs.id, fragments: [] }] }, "prompts[0].id"],
          [{ fragments: other.fragments }, "fragments[0].id"],
          [{ prompts: [{ ...mine, versions: theirs.versions }] }, "prompts[0].versions[0].id"],
          [
            {
              prompts: [{ ...mine, fragments: [fragmentBinding(own.fragments[0]!, 1, theirs.fragments[0])] }]
            },
            "prompts[0].fragments[0].id"
          ]
        ]
        for (const [changes, path] of rejected)
          for (const dryRun of [true, false])
            assert.deepStrictEqual(
              yield* Effect.flip(editContent(home, changes, { dryRun })),
              foreignIdError(path)
            )
        for (const each of [own, other])
          assert.deepStrictEqual(yield* exportArchive(each.workspace.id), inExportOrder(each))
        assert.strictEqual(yield* store.editContent(home, returnEdit), "edited")
        const { folders, fragments } = yield* exportArchive(home)
        assert.deepStrictEqual(folders, [...own.folders, ...added.folders].sort(compareIds))
        assert.deepStrictEqual(fragments, [...own.fragments, ...added.fragments].sort(compareIds))
        assert.deepStrictEqual(
          yield* Effect.flip(editContent(newId<WorkspaceId>(), added)),
          WorkspaceNotFound
        )
      })
  )

  it.effect(
    "editContent replaces the recorded states of its workspace, however many there are, and readContent returns them",
    () =>
      Effect.gen(function* () {
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
        // An archive contains no states, so importing an archive keeps them.
        yield* loadArchive(home)
        assert.sameDeepMembers([...(yield* readStates)], states)
        assert.deepStrictEqual((yield* readContent(other.workspace.id)).importedStates, [])
        // Together, these states are larger than the maximum size of a row that the driver reads.
        yield* replace(Array.from({ length: 130_000 }, makeState))
        assert.lengthOf(yield* readStates, 130_000)
      })
  )

  it.effect("concurrent calls of editContent lose no edit", () =>
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const home = workspace()
      yield* loadArchive(archive({ workspace: home }))
      const add = (name: string) =>
        store.editContent(home.id, ({ folders }) => {
          const exists = folders.some((folder) => folder.name === name)
          return Effect.succeed([makeEdit({ folders: exists ? [] : [folder({ name })] }), name] as const)
        })
      yield* Effect.all(["a", "b", "c", "a", "b", "c"].map(add), { concurrency: "unbounded" })
      const { folders } = yield* exportArchive(home.id)
      assert.deepStrictEqual(folders.map(({ name }) => name).sort(), ["a", "b", "c"])
    })
  )
}
