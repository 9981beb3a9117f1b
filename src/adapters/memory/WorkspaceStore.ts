import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Archive, type ArchiveKey, type ArchiveUser, BadArchive } from "../../application/Archive.ts"
import { WorkspaceNotFound, WorkspaceStore } from "../../application/WorkspaceStore.ts"
import { conflicts } from "./conflicts.ts"
import { State, type Workspace } from "./State.ts"

/**
 * A key that is there keeps its hash, owner and workspace: with others it could escape a revocation, a forced
 * reset or its want of a workspace.
 */
const mergeKey = (existing: ArchiveKey | undefined, key: ArchiveKey): ArchiveKey =>
  existing === undefined
    ? key
    : { ...existing, name: key.name, revoked_at: existing.revoked_at ?? key.revoked_at }

const mergeUser = (existing: ArchiveUser | undefined, user: ArchiveUser): ArchiveUser =>
  existing === undefined
    ? user
    : { ...existing, must_reset_password: existing.must_reset_password || user.must_reset_password }

const mergeWorkspace = (existing: Workspace["workspace"] | undefined, workspace: Workspace["workspace"]) =>
  existing === undefined
    ? workspace
    : { ...workspace, tier: existing.tier, billing_status: existing.billing_status }

const importInto = (state: State["Service"], archive: Archive): void => {
  const { format: _, users, api_keys, workspace, ...content } = archive
  const existing = state.workspaces.get(workspace.id)?.workspace
  state.workspaces.set(workspace.id, { workspace: mergeWorkspace(existing, workspace), ...content })
  for (const user of users) state.users.set(user.id, mergeUser(state.users.get(user.id), user))
  for (const key of api_keys) state.keys.set(key.id, mergeKey(state.keys.get(key.id), key))
}

const workspaceStore = (state: State["Service"]): WorkspaceStore["Service"] => ({
  count: Effect.sync(() => state.workspaces.size),
  importArchive: (archive) =>
    Effect.suspend(() => {
      const faults = conflicts(state, archive)
      if (faults.length > 0) return Effect.fail(BadArchive(faults))
      importInto(state, archive)
      return Effect.void
    }),
  addKey: (workspaceId, { email, newUserId }, key) =>
    Effect.suspend(() => {
      if (!state.workspaces.has(workspaceId)) return Effect.fail(WorkspaceNotFound)
      if (
        state.keys.has(key.id) ||
        [...state.keys.values()].some(({ key_hash }) => key_hash === key.key_hash)
      )
        return Effect.die(new Error("the key is there already"))
      const owner = [...state.users.values()].find((user) => user.email.toLowerCase() === email.toLowerCase())
      if (owner === undefined)
        state.users.set(newUserId, { id: newUserId, email, must_reset_password: false })
      state.keys.set(key.id, {
        ...key,
        workspace_id: workspaceId,
        created_by: owner?.id ?? newUserId,
        revoked_at: null
      })
      return Effect.void
    })
})

/** What operators change in the store. */
export const layer: Layer.Layer<WorkspaceStore, never, State> = Layer.effect(
  WorkspaceStore,
  Effect.map(State, workspaceStore)
)
