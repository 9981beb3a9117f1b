import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { Archive, ArchiveKey, ArchiveUser } from "../../../application/formats/Archive.ts"
import type { ApiKeyId, UserId } from "../../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

/** A workspace and its content. */
export type Workspace = Omit<Archive, "format" | "users" | "api_keys">

/** The in-memory store; `lastUsed` is in milliseconds since the epoch. */
export class State extends Context.Service<
  State,
  {
    readonly workspaces: Map<WorkspaceId, Workspace>
    readonly users: Map<UserId, ArchiveUser>
    readonly keys: Map<ApiKeyId, ArchiveKey>
    readonly lastUsed: Map<ApiKeyId, number>
  }
>()("prompt-retrieval/MemoryState") {
  static readonly layer: Layer.Layer<State> = Layer.sync(State, () => ({
    workspaces: new Map(),
    users: new Map(),
    keys: new Map(),
    lastUsed: new Map()
  }))
}
