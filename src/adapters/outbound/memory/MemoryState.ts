import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Archive } from "../../../application/transfer/Archive.ts"
import type { ApiKeyId, UserId } from "../../../domain/ApiKey.ts"
import type { StoredKey, User } from "../../../domain/Workspace.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

export type MemoryWorkspace = Omit<Archive, "format" | "users" | "api_keys">

/** The in-memory store. `lastUsed` has the time of each key's last use, in milliseconds since the epoch. */
export class MemoryState extends Context.Service<
  MemoryState,
  {
    readonly workspaces: Map<WorkspaceId, MemoryWorkspace>
    readonly users: Map<UserId, User>
    readonly keys: Map<ApiKeyId, StoredKey>
    readonly lastUsed: Map<ApiKeyId, number>
  }
>()("prompt-retrieval/MemoryState") {
  static readonly layer: Layer.Layer<MemoryState> = Layer.sync(MemoryState, () => ({
    workspaces: new Map(),
    users: new Map(),
    keys: new Map(),
    lastUsed: new Map()
  }))
}

/** Stores a workspace, its users and its keys. Replaces a stored workspace, user or key with the same id. */
export const storeArchive = ({
  users,
  api_keys,
  ...content
}: Archive): Effect.Effect<void, never, MemoryState> =>
  Effect.map(MemoryState, (state) => {
    state.workspaces.set(content.workspace.id, content)
    for (const user of users) state.users.set(user.id, user)
    for (const key of api_keys) state.keys.set(key.id, key)
  })
