import { assert, type Vitest } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Archive } from "../../../src/application/formats/Archive.ts"
import { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import { PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import { type NewKey, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { UserId } from "../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  type Key,
  archive,
  folder,
  fragment,
  prompt,
  tag,
  toPartStream,
  use,
  version
} from "../../support/archives.ts"
import { listOf, promptOf, sourceOf, versionSummaryOf, versionsOf } from "../../support/model.ts"

/** The tests of one area of the contract are registered with the `it` of its suite. */
export type ContractTests = Vitest.MethodsNonLive<PromptRepo | KeyStore | WorkspaceStore>

export const everything = { page: 1, per_page: 100 }

export const load = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (workspaces) => workspaces.importWorkspace(toPartStream(archive)))

export const findKey = ({ stored }: Key) => Effect.flatMap(KeyStore, (keys) => keys.find(stored.key_hash))

const toNewKey = ({ stored }: Key): NewKey => {
  const { workspace_id: _, created_by: __, revoked_at: ___, ...rest } = stored
  return rest
}

export const addKey = (workspace: WorkspaceId, email: string, newUserId: UserId, made: Key) =>
  Effect.flatMap(WorkspaceStore, (workspaces) =>
    workspaces.addKey(workspace, { email, newUserId }, toNewKey(made))
  )

/** Returns the sorted paths of the problems for which an import is rejected. */
export const rejectedPaths = (archive: Archive) =>
  Effect.map(Effect.flip(load(archive)), (error) =>
    error._tag === "InvalidContent" ? error.problems.map(({ path }) => path).sort() : error
  )

/** Asserts that every read of a workspace returns what the archive contains. */
export const assertReads = Effect.fnUntraced(function* (archive: Archive) {
  const repo = yield* PromptRepo
  const id = archive.workspace.id
  const whole = listOf(archive, {})
  assert.deepStrictEqual(yield* repo.list(id, {}, everything), { items: whole, total: whole.length })
  for (const { name: tag } of archive.tags) {
    assert.deepStrictEqual((yield* repo.list(id, { tag }, everything)).items, listOf(archive, { tag }))
  }
  for (const { id: folder_id } of archive.folders) {
    assert.deepStrictEqual(
      (yield* repo.list(id, { folder_id }, everything)).items,
      listOf(archive, { folder_id })
    )
  }
  for (const prompt of archive.prompts) {
    assert.deepStrictEqual(yield* repo.get(id, prompt.id), promptOf(archive, prompt))
    assert.deepStrictEqual(yield* repo.getSource(id, prompt.id), sourceOf(archive, prompt))
    const versions = versionsOf(prompt)
    assert.deepStrictEqual(yield* repo.listVersions(id, prompt.id, undefined, everything), {
      items: versions.map(versionSummaryOf),
      total: versions.length
    })
    for (const version of versions) {
      assert.deepStrictEqual(
        yield* repo.getVersion(id, prompt.id, version.version_number, undefined),
        version
      )
    }
  }
})

export const byId = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : 1)

/** Orders an archive as an export does. An export does not contain users without a key of the workspace. */
export const inExportOrder = (archive: Archive): Archive => ({
  ...archive,
  users: archive.users.toSorted(byId),
  api_keys: archive.api_keys.toSorted(byId),
  folders: archive.folders.toSorted(byId),
  tags: archive.tags.toSorted(byId),
  fragments: archive.fragments.toSorted(byId),
  prompts: archive.prompts.toSorted(byId).map((prompt) => ({
    ...prompt,
    tags: prompt.tags.toSorted(),
    fragments: prompt.fragments.toSorted(byId).sort((a, b) => a.position - b.position),
    versions: prompt.versions.toSorted((a, b) => a.version_number - b.version_number)
  }))
})

/** Returns an archive with one item of each kind that has an id. */
export const oneOfEach = () => {
  const [drawer, label, snippet] = [folder(), tag("label"), fragment("Snippet")]
  const one = prompt({
    folder_id: drawer.id,
    tags: [label.id],
    fragments: [use(snippet, 1)],
    versions: [version(1)]
  })
  return archive({ folders: [drawer], tags: [label], fragments: [snippet], prompts: [one] })
}
