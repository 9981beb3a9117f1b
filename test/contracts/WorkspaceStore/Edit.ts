import { assert } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { WorkspaceNotFound, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { PromptFragment, WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import { type ContentEdit, emptyEdit, type ImportedState } from "../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  loadArchive,
  archive,
  archives,
  compareIds,
  exportArchive,
  folder,
  fragment,
  newId,
  sample,
  toWorkspaceContent,
  fragmentBinding,
  version,
  workspace
} from "../../support/archives.ts"
import {
  type ContractTests,
  assertReads,
  foreignIdError,
  inExportOrder,
  makeOneOfEach,
  makeOneOfEachWithNilId
} from "./support.ts"

const naturals = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))

/** Makes an edit of a stored workspace from the content of another archive. Returns the edit and the edited archive. */
const makeEdit = (
  before: Archive,
  other: Archive,
  picks: ReadonlyArray<number>
): { readonly edit: ContentEdit; readonly after: Archive } => {
  const pick = (index: number): number => picks[index % Math.max(1, picks.length)] ?? 0
  const removed = new Set(before.fragments.filter((_, i) => pick(i) % 5 === 0).map(({ id }) => id))
  const rewritten = before.fragments
    .filter(({ id }, i) => !removed.has(id) && pick(i + 1) % 2 === 0)
    .map((fragment) => ({ ...fragment, content: `${fragment.content}!` }))
  const names = new Set(before.tags.map(({ name }) => name))
  const tags = other.tags.filter(({ name }) => !names.has(name))
  const fragments = [...rewritten, ...other.fragments]
  const allTags = [...before.tags, ...tags].map(({ id }) => id)
  const allFragments = [...before.fragments, ...other.fragments].filter(({ id }) => !removed.has(id))
  const folders = [...before.folders, ...other.folders]
  const withoutRemoved = (uses: ReadonlyArray<PromptFragment>) =>
    uses.filter(({ fragment_id }) => !removed.has(fragment_id))

  const edits: Array<WorkspacePrompt> = []
  const changed = before.prompts.map((prompt, i): WorkspacePrompt => {
    const remaining = { ...prompt, fragments: withoutRemoved(prompt.fragments) }
    if (pick(i) % 3 === 0) return remaining
    const last = Math.max(0, ...prompt.versions.map(({ version_number }) => version_number))
    const edit: WorkspacePrompt = {
      ...remaining,
      title: `${prompt.title}!`,
      is_archived: pick(i + 1) % 2 === 0,
      folder_id: folders[pick(i)]?.id ?? null,
      ...(pick(i + 2) % 2 === 0 ? { tags: allTags.filter((_, n) => pick(n + i) % 2 === 0) } : {}),
      ...(pick(i + 3) % 2 === 0
        ? {
            fragments: allFragments
              .filter((_, n) => pick(n + i) % 2 === 0)
              .map((of, n) =>
                fragmentBinding(of, n, n === 0 ? { id: prompt.fragments[0]?.id ?? newId() } : {})
              )
          }
        : {}),
      versions:
        pick(i + 4) % 2 === 0
          ? [version(last + 1, { parent_version_id: prompt.versions[0]?.id ?? null })]
          : []
    }
    edits.push(edit)
    return { ...edit, versions: [...prompt.versions, ...edit.versions] }
  })
  const added = other.prompts.map(
    (prompt): WorkspacePrompt => ({
      ...prompt,
      tags: prompt.tags.filter((id) => allTags.includes(id)),
      versions: prompt.versions.slice(0, 1).map((first) => ({ ...first, parent_version_id: null }))
    })
  )
  const rewrittenById = new Map(rewritten.map((fragment) => [fragment.id, fragment]))
  return {
    edit: {
      folders: other.folders,
      tags,
      fragments,
      removedFragments: [...removed],
      prompts: [...edits, ...added]
    },
    after: {
      ...before,
      folders,
      tags: [...before.tags, ...tags],
      fragments: allFragments.map((fragment) => rewrittenById.get(fragment.id) ?? fragment),
      prompts: [...changed, ...added]
    }
  }
}

export const testEdit = (it: ContractTests): void => {
  it.effect("editContent applies the edit, and changes nothing in a dry run or after a failure", () =>
    Effect.gen(function* () {
      const { editContent, readContent } = yield* WorkspaceStore
      const { archive: own } = sample()
      const home = own.workspace.id
      yield* loadArchive(own)
      const before = yield* exportArchive(home)
      assert.deepStrictEqual(yield* readContent(home), toWorkspaceContent(before))
      const edit = { ...emptyEdit, folders: [folder({ name: "Added" })], fragments: [fragment("Added")] }
      const after = {
        ...before,
        folders: [...before.folders, ...edit.folders].sort(compareIds),
        fragments: [...before.fragments, ...edit.fragments].sort(compareIds)
      }
      const returnEdit = () => Effect.succeed([edit, "edited"] as const)
      assert.strictEqual(yield* editContent(home, returnEdit, { dryRun: true }), "edited")
      assert.deepStrictEqual(yield* exportArchive(home), before)
      assert.strictEqual(yield* Effect.flip(editContent(home, () => Effect.fail("no"))), "no")
      assert.deepStrictEqual(yield* exportArchive(home), before)
      const taken = sample().archive
      yield* loadArchive(taken)
      for (const dryRun of [true, false]) {
        assert.deepStrictEqual(
          yield* Effect.flip(
            editContent(
              home,
              () =>
                Effect.succeed([
                  { ...edit, folders: [...edit.folders, taken.folders[0]!] },
                  undefined
                ] as const),
              { dryRun }
            )
          ),
          foreignIdError("folders[1].id")
        )
      }
      assert.deepStrictEqual(yield* exportArchive(home), before)
      assert.strictEqual(yield* editContent(home, returnEdit), "edited")
      assert.deepStrictEqual(yield* exportArchive(home), after)
      assert.deepStrictEqual(
        yield* Effect.flip(editContent(newId<WorkspaceId>(), returnEdit)),
        WorkspaceNotFound
      )
    })
  )

  it.effect(
    "editContent rejects a prompt, a fragment, a version and a fragment binding with an id that belongs to another workspace",
    () =>
      Effect.gen(function* () {
        const { editContent } = yield* WorkspaceStore
        const [other, own] = [makeOneOfEach(), makeOneOfEach()]
        yield* loadArchive(other)
        yield* loadArchive(own)
        const [theirs] = other.prompts
        const mine = { ...own.prompts[0]!, versions: [] }
        const attempts: ReadonlyArray<readonly [Partial<ContentEdit>, string]> = [
          [{ prompts: [{ ...mine, id: theirs!.id, fragments: [] }] }, "prompts[0].id"],
          [{ fragments: other.fragments }, "fragments[0].id"],
          [{ prompts: [{ ...mine, versions: theirs!.versions }] }, "prompts[0].versions[0].id"],
          [
            {
              prompts: [{ ...mine, fragments: [fragmentBinding(own.fragments[0]!, 1, theirs!.fragments[0])] }]
            },
            "prompts[0].fragments[0].id"
          ]
        ]
        for (const [changes, path] of attempts) {
          const edit = { ...emptyEdit, ...changes }
          assert.deepStrictEqual(
            yield* Effect.flip(
              editContent(own.workspace.id, () => Effect.succeed([edit, undefined] as const))
            ),
            foreignIdError(path)
          )
        }
        yield* assertReads(other)
        yield* assertReads(own)
      })
  )

  it.effect.prop(
    "editContent gives any workspace the content that the edit describes",
    { before: archives, other: archives, picks: Arbitrary.array(naturals, { maxLength: 12 }) },
    Effect.fnUntraced(function* ({ before, other, picks }) {
      const { editContent, readContent } = yield* WorkspaceStore
      const home = before.workspace.id
      yield* loadArchive(before)
      const stored = yield* exportArchive(home)
      const { edit, after } = makeEdit(stored, other, picks)
      yield* editContent(home, () => Effect.succeed([edit, undefined] as const))
      assert.deepStrictEqual(yield* exportArchive(home), inExportOrder(after))
      assert.deepStrictEqual(yield* readContent(home), toWorkspaceContent(inExportOrder(after)))
      yield* assertReads(after)
    }),
    { arbitrary: { runs: 8, maxShrinks: 50 } }
  )

  it.effect(
    "editContent replaces the recorded states of its workspace, however many there are, and readContent returns them",
    () =>
      Effect.gen(function* () {
        const { editContent, readContent, importWorkspace } = yield* WorkspaceStore
        const [home, other] = [workspace(), workspace()]
        yield* loadArchive(archive({ workspace: home }))
        yield* loadArchive(archive({ workspace: other }))
        const makeState = (): ImportedState => ({ kind: "prompt", id: newId(), hash: "0".repeat(64) })
        const sort = (states: ReadonlyArray<ImportedState>) =>
          states.toSorted((a, b) => (a.kind + a.id < b.kind + b.id ? -1 : 1))
        const readStates = Effect.map(readContent(home.id), ({ importedStates }) => sort(importedStates))
        const replace = (importedStates: ReadonlyArray<ImportedState> | undefined, dryRun = false) =>
          editContent(home.id, () => Effect.succeed([{ ...emptyEdit, importedStates }, undefined] as const), {
            dryRun
          })
        const [one, two] = [makeState(), makeState()]
        yield* replace([one, two, makeState()])
        // A prompt and a fragment can have the same id.
        const states = [{ ...one, hash: "f".repeat(64) }, two, { ...one, kind: "fragment" as const }]
        yield* replace(states, true)
        assert.strictEqual((yield* readStates).length, 3)
        yield* replace(states)
        yield* replace(undefined)
        assert.deepStrictEqual(yield* readStates, sort(states))
        // An archive contains no states, so importing an archive keeps them.
        yield* importWorkspace(archive({ workspace: home }))
        assert.deepStrictEqual(yield* readStates, sort(states))
        assert.deepStrictEqual((yield* readContent(other.id)).importedStates, [])
        // Together, these states are larger than the maximum size of a row that the driver reads.
        yield* replace(Array.from({ length: 130_000 }, makeState))
        assert.strictEqual((yield* readContent(home.id)).importedStates.length, 130_000)
      })
  )

  it.effect("concurrent calls of editContent lose no edit", () =>
    Effect.gen(function* () {
      const { editContent } = yield* WorkspaceStore
      const home = workspace()
      yield* loadArchive(archive({ workspace: home }))
      const add = (name: string) =>
        editContent(home.id, ({ folders }) =>
          Effect.succeed([
            {
              ...emptyEdit,
              folders: folders.some((folder) => folder.name === name) ? [] : [folder({ name })]
            },
            name
          ] as const)
        )
      yield* Effect.all(["a", "b", "c", "a", "b", "c"].map(add), { concurrency: "unbounded" })
      assert.deepStrictEqual((yield* exportArchive(home.id)).folders.map(({ name }) => name).sort(), [
        "a",
        "b",
        "c"
      ])
    })
  )

  it.effect("rows with the nil UUID can be imported, exported and edited", () =>
    Effect.gen(function* () {
      const { editContent, importWorkspace } = yield* WorkspaceStore
      const original = makeOneOfEachWithNilId()
      const home = original.workspace
      yield* loadArchive(original)
      assert.deepStrictEqual(yield* exportArchive(home.id), original)
      yield* loadArchive(yield* exportArchive(home.id))
      yield* editContent(home.id, (content) => {
        assert.deepStrictEqual(content, toWorkspaceContent(original))
        return Effect.succeed([{ ...emptyEdit, folders: [folder()] }, undefined] as const)
      })
      const { folders, ...rest } = yield* exportArchive(home.id)
      assert.deepStrictEqual({ ...rest, folders: [folders[0]!] }, original)
      // Deletes the content, so that other tests of the same database can use its ids.
      yield* importWorkspace(archive({ workspace: home }))
    })
  )
}
