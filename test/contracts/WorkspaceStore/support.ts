import type { Vitest } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import { PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import {
  type NewKey,
  type ReplacementKey,
  WorkspaceStore
} from "../../../src/application/ports/WorkspaceStore.ts"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import type { KeyRecord, UserId } from "../../../src/domain/ApiKey.ts"
import type { ContentEdit } from "../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  compareIds,
  folder,
  fragment,
  fragmentBinding,
  type Key,
  makeEdit,
  prompt,
  tag,
  version
} from "../../support/archives.ts"

export { assertReads } from "../../../src/testing/promptReads.ts"

/** The `it` of a suite. Each area of the contract registers its tests with this `it`. */
export type ContractTests = Vitest.MethodsNonLive<PromptRepo | KeyStore | WorkspaceStore>

export const findKey = ({ stored }: Key) => Effect.flatMap(KeyStore, (keys) => keys.find(stored.key_hash))

/** Returns the record that a lookup of a workspace's key finds. */
export const makeRecord = (
  { stored }: Key,
  { id, tier, billing_status }: Archive["workspace"],
  overrides: Partial<KeyRecord> = {}
): KeyRecord => ({
  id: stored.id,
  revoked: stored.revoked_at !== null,
  expires_at: stored.expires_at,
  owner_must_reset: false,
  workspace: { id, tier, billing_status },
  ...overrides
})

/** Returns a key without the fields that the store adds. */
export const toNewKey = ({ stored }: Key): NewKey => {
  const { workspace_id: _, created_by: __, revoked_at: ___, ...rest } = stored
  return rest
}

/** Returns a key without a name, because a replacement key gets the name of the key that it replaces. */
export const toReplacement = (added: Key): ReplacementKey => {
  const { name: _, ...replacement } = toNewKey(added)
  return replacement
}

export const addKey = (workspace: WorkspaceId, email: string, newUserId: UserId, added: Key) =>
  Effect.flatMap(WorkspaceStore, (workspaces) =>
    workspaces.addKey(workspace, { email, newUserId }, toNewKey(added))
  )

/**
 * Returns an archive with its items in the order of an export. Keeps the users without a key of the workspace, although
 * an export omits these users.
 */
export const inExportOrder = (archive: Archive): Archive => ({
  ...archive,
  users: archive.users.toSorted(compareIds),
  api_keys: archive.api_keys.toSorted(compareIds),
  folders: archive.folders.toSorted(compareIds),
  tags: archive.tags.toSorted(compareIds),
  fragments: archive.fragments.toSorted(compareIds),
  prompts: archive.prompts.toSorted(compareIds).map((prompt) => ({
    ...prompt,
    tags: prompt.tags.toSorted(),
    fragments: prompt.fragments.toSorted(compareIds).sort((a, b) => a.position - b.position),
    versions: prompt.versions.toSorted((a, b) => a.version_number - b.version_number)
  }))
})

/** Returns an archive with one item of each kind of content. */
export const oneOfEach = () => {
  const [drawer, label, snippet] = [folder(), tag("label"), fragment("Snippet")]
  const one = prompt({
    folder_id: drawer.id,
    tags: [label.id],
    fragments: [fragmentBinding(snippet, 1)],
    versions: [version(1)]
  })
  return archive({ folders: [drawer], tags: [label], fragments: [snippet], prompts: [one] })
}

/** Edits the content of a workspace in the store of the current test. */
export const editContent = (
  workspace: WorkspaceId,
  changes: Partial<ContentEdit>,
  options?: { readonly dryRun?: boolean; readonly source?: string }
) =>
  Effect.flatMap(WorkspaceStore, (store) =>
    store.editContent(workspace, () => Effect.succeed([makeEdit(changes), undefined] as const), options)
  )
