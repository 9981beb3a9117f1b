import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Archive } from "../../../application/transfer/Archive.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

/** The in-memory store: the archives of its workspaces. */
export class MemoryState extends Context.Service<MemoryState, Map<WorkspaceId, Archive>>()(
  "prompt-retrieval/MemoryState"
) {
  static readonly layer: Layer.Layer<MemoryState> = Layer.sync(MemoryState, () => new Map())
}

/** Stores a workspace, its users and its keys. Replaces a stored workspace with the same id. */
export const storeArchive = (archive: Archive): Effect.Effect<void, never, MemoryState> =>
  Effect.map(MemoryState, (archives) => void archives.set(archive.workspace.id, archive))
