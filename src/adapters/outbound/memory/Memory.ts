import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { Archive } from "../../../application/transfer/Archive.ts"
import { type ApiKeyId, InvalidKey, type UserId } from "../../../domain/ApiKey.ts"
import type { StoredKey, User } from "../../../domain/Workspace.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { makePromptRepo } from "./MemoryPromptRepo.ts"

/** The in-memory store. All workspaces share the users, because a user can have keys of several workspaces. */
export class MemoryState extends Context.Service<
  MemoryState,
  {
    readonly workspaces: Map<WorkspaceId, Archive>
    readonly users: Map<UserId, User>
    readonly keys: Map<ApiKeyId, StoredKey>
  }
>()("prompt-retrieval/adapters/outbound/memory/MemoryState") {}

/** Stores a workspace, its users and its keys. Replaces a stored workspace, user or key with the same id. */
export const storeArchive = (archive: Archive): Effect.Effect<void, never, MemoryState> =>
  Effect.map(MemoryState, ({ workspaces, users, keys }) => {
    workspaces.set(archive.workspace.id, archive)
    for (const user of archive.users) users.set(user.id, user)
    for (const key of archive.api_keys) keys.set(key.id, key)
  })

const makeKeyStore = ({ workspaces, users, keys }: MemoryState["Service"]): KeyStore["Service"] => ({
  find: (hash) =>
    Effect.suspend(() => {
      const key = [...keys.values()].find(({ key_hash }) => key_hash === hash)
      if (key === undefined) return Effect.fail(InvalidKey)
      const home = key.workspace_id === null ? undefined : workspaces.get(key.workspace_id)?.workspace
      return Effect.succeed({
        id: key.id,
        revoked: key.revoked_at !== null,
        expires_at: key.expires_at,
        owner_must_reset: users.get(key.created_by)?.must_reset_password === true,
        workspace:
          home === undefined ? null : { id: home.id, tier: home.tier, billing_status: home.billing_status }
      })
    }),
  markUsed: () => {}
})

/** Provides an empty in-memory store, and PromptRepo and KeyStore on this store. */
export const layer: Layer.Layer<PromptRepo | KeyStore | MemoryState> = Layer.mergeAll(
  Layer.effect(
    PromptRepo,
    Effect.map(MemoryState, ({ workspaces }) => makePromptRepo(workspaces))
  ),
  Layer.effect(KeyStore, Effect.map(MemoryState, makeKeyStore))
).pipe(
  Layer.provideMerge(
    Layer.sync(MemoryState, () => ({ workspaces: new Map(), users: new Map(), keys: new Map() }))
  )
)
