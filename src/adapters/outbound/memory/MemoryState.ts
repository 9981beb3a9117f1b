import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Archive, ArchiveKey, ArchiveUser } from "../../../application/formats/Archive.ts"
import type { ApiKeyId, UserId } from "../../../domain/ApiKey.ts"
import type { AuditEntry, AuditEvent } from "../../../domain/workspace/AuditEvent.ts"
import type { ImportedFile } from "../../../domain/workspace/ImportedFile.ts"
import { toTimestamp } from "../../../domain/Timestamp.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

export type MemoryWorkspace = Omit<Archive, "format" | "users" | "api_keys">

/**
 * The in-memory store. `lastUsed` has the time of each key's last use, in milliseconds since the epoch. `events` are in
 * the order of their ids.
 */
export class MemoryState extends Context.Service<
  MemoryState,
  {
    readonly workspaces: Map<WorkspaceId, MemoryWorkspace>
    readonly users: Map<UserId, ArchiveUser>
    readonly keys: Map<ApiKeyId, ArchiveKey>
    readonly lastUsed: Map<ApiKeyId, number>
    readonly events: Array<AuditEvent>
    /** The files of each workspace's latest import of files. */
    readonly importedFiles: Map<WorkspaceId, ReadonlyArray<ImportedFile>>
  }
>()("prompt-retrieval/MemoryState") {
  static readonly layer: Layer.Layer<MemoryState> = Layer.sync(MemoryState, () => ({
    workspaces: new Map(),
    users: new Map(),
    keys: new Map(),
    lastUsed: new Map(),
    events: [],
    importedFiles: new Map()
  }))
}

/** Appends entries to the audit log. */
export type RecordEvents = (entries: ReadonlyArray<AuditEntry>) => Effect.Effect<void>

export const makeRecorder = ({ events }: MemoryState["Service"], actor: string): RecordEvents =>
  Effect.fnUntraced(function* (entries) {
    const at = toTimestamp(yield* Clock.currentTimeMillis)
    for (const entry of entries) events.push({ id: String(events.length + 1), at, actor, ...entry })
  })
