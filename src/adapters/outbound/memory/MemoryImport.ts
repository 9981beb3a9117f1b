import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Stream from "effect/Stream"
import {
  type Archive,
  type ArchiveKey,
  type ArchiveUser,
  archiveFromParts
} from "../../../application/formats/Archive.ts"
import * as audit from "../../../domain/workspace/AuditEvent.ts"
import { addPart, emptySummary } from "../../../domain/workspace/ImportSummary.ts"
import type { WorkspacePart } from "../../../domain/workspace/WorkspaceParts.ts"
import { InvalidContent } from "../../../domain/workspace/Problem.ts"
import type { ChangeOptions, RowCounts, WorkspaceStore } from "../../../application/ports/WorkspaceStore.ts"
import type { Timestamp } from "../../../domain/Timestamp.ts"
import { findConflicts } from "./MemoryImportConflicts.ts"
import type { MemoryState, MemoryWorkspace, RecordEvents } from "./MemoryState.ts"

/** Returns the earlier of two times. Null means never, so it is later than every time. */
const chooseEarlier = (a: Timestamp | null, b: Timestamp | null): Timestamp | null =>
  a === null || (b !== null && b < a) ? b : a

/**
 * An existing key keeps its hash, owner and workspace. An import cannot cancel a revocation or delay the expiry of a
 * key. Otherwise, an import could give access again to a revoked key, to a key whose owner must reset the password, or
 * to a key without a workspace.
 */
const mergeKey = (existing: ArchiveKey | undefined, key: ArchiveKey): ArchiveKey =>
  existing === undefined
    ? key
    : {
        ...existing,
        name: key.name,
        revoked_at: existing.revoked_at ?? key.revoked_at,
        expires_at: chooseEarlier(existing.expires_at, key.expires_at)
      }

/** An import can force a password reset, but cannot cancel a forced reset. */
const mergeUser = (existing: ArchiveUser | undefined, user: ArchiveUser): ArchiveUser =>
  existing === undefined
    ? user
    : { ...existing, must_reset_password: existing.must_reset_password || user.must_reset_password }

/** An existing workspace keeps its tier and billing status. */
const mergeWorkspace = (
  existing: MemoryWorkspace["workspace"] | undefined,
  workspace: MemoryWorkspace["workspace"]
) =>
  existing === undefined
    ? workspace
    : { ...workspace, tier: existing.tier, billing_status: existing.billing_status }

const applyImport = (state: MemoryState["Service"], archive: Archive): void => {
  const { format: _, users, api_keys, workspace, ...content } = archive
  const existing = state.workspaces.get(workspace.id)?.workspace
  state.workspaces.set(workspace.id, { workspace: mergeWorkspace(existing, workspace), ...content })
  for (const user of users) state.users.set(user.id, mergeUser(state.users.get(user.id), user))
  for (const key of api_keys) state.keys.set(key.id, mergeKey(state.keys.get(key.id), key))
}

/** The rows of a workspace, keyed by table and id. */
type Rows = ReadonlyMap<string, object>

/** Returns the stored rows of the workspace, the users and the keys that an archive names. */
const toRows = (state: MemoryState["Service"], { workspace, users, api_keys }: Archive): Rows => {
  const rows = new Map<string, object>()
  const add = (table: string, id: string, row: object) => rows.set(`${table} ${id}`, row)
  const found = state.workspaces.get(workspace.id)
  if (found !== undefined) {
    add("workspaces", workspace.id, found.workspace)
    for (const list of ["folders", "tags", "fragments"] as const)
      for (const item of found[list]) add(list, item.id, item)
    for (const { tags, fragments, versions, ...row } of found.prompts) {
      add("prompts", row.id, row)
      for (const tag of tags) add("prompt_tags", `${row.id} ${tag}`, {})
      for (const item of fragments) add("prompt_fragments", item.id, { ...item, prompt_id: row.id })
      for (const item of versions) add("prompt_versions", item.id, { ...item, prompt_id: row.id })
    }
  }
  for (const { id } of users) if (state.users.has(id)) add("users", id, state.users.get(id) ?? {})
  for (const { id } of api_keys) if (state.keys.has(id)) add("api_keys", id, state.keys.get(id) ?? {})
  return rows
}

/** Counts the rows that differ between two states. The tag rows of a removed prompt are not counted. */
const countRows = (before: Rows, after: Rows): RowCounts => {
  const isPartOfRemoved = (name: string): boolean => {
    const [table, promptId] = name.split(" ")
    return table === "prompt_tags" && !after.has(`prompts ${promptId}`)
  }
  return {
    added: [...after.keys()].filter((name) => !before.has(name)).length,
    changed: [...after].filter(([name, row]) => !Equal.equals(before.get(name) ?? row, row)).length,
    removed: [...before.keys()].filter((name) => !after.has(name) && !isPartOfRemoved(name)).length
  }
}

export const importWorkspace = (
  state: MemoryState["Service"],
  record: RecordEvents
): WorkspaceStore["Service"]["importWorkspace"] =>
  Effect.fnUntraced(function* <E>(parts: Stream.Stream<WorkspacePart, E>, options?: ChangeOptions) {
    const collected = yield* Stream.runCollect(parts)
    const summary = collected.reduce(addPart, emptySummary)
    const archive = archiveFromParts(collected)
    const { first, count } = findConflicts(state, archive)
    if (count > 0) return yield* Effect.fail(InvalidContent(first, count))
    const isDryRun = options?.dryRun === true
    const target = isDryRun
      ? {
          ...state,
          workspaces: new Map(state.workspaces),
          users: new Map(state.users),
          keys: new Map(state.keys)
        }
      : state
    const before = toRows(target, archive)
    applyImport(target, archive)
    if (!isDryRun) yield* record([audit.toWorkspaceImportedEntry(options?.source, summary)])
    return { ...summary, rows: countRows(before, toRows(target, archive)) }
  })
