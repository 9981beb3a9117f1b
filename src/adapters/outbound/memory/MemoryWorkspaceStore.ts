import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ArchiveKey, type ArchiveUser } from "../../../application/formats/Archive.ts"
import { Actor } from "../../../application/administration/Actor.ts"
import { type ApiKeyId, endKey, isActive } from "../../../domain/ApiKey.ts"
import * as audit from "../../../domain/workspace/AuditEvent.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { toExportParts } from "../../../domain/workspace/WorkspaceParts.ts"
import { InvalidContent } from "../../../domain/workspace/Problem.ts"
import { isEmptyEdit } from "../../../domain/workspace/WorkspaceContent.ts"
import {
  type KeyInfo,
  KeyNotFound,
  KeyEnded,
  KeyUnassigned,
  UserHasActiveKeys,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../application/ports/WorkspaceStore.ts"
import { toTimestamp } from "../../../domain/Timestamp.ts"
import { findConflicts } from "./MemoryImportConflicts.ts"
import { makeRecorder, MemoryState, type MemoryWorkspace, type RecordEvents } from "./MemoryState.ts"

import {
  applyEdit,
  compareById,
  editToArchive,
  getOwner,
  listKeys,
  listOwners,
  toContent,
  toParts
} from "./MemoryContent.ts"
import { importWorkspace } from "./MemoryImport.ts"

const findWorkspace = (state: MemoryState["Service"], id: WorkspaceId) =>
  Effect.suspend(() => {
    const found = state.workspaces.get(id)
    return found === undefined ? Effect.fail(WorkspaceNotFound) : Effect.succeed(found)
  })

const findUser = (state: MemoryState["Service"], email: string): ArchiveUser | undefined =>
  [...state.users.values()].find((user) => user.email.toLowerCase() === email.toLowerCase())

const toKeyInfo = (state: MemoryState["Service"], key: ArchiveKey): KeyInfo => {
  const { key_hash: _, created_by: __, ...info } = key
  const used = state.lastUsed.get(key.id)
  return {
    ...info,
    owner: getOwner(state, key).email,
    last_used_at: used === undefined ? null : toTimestamp(used)
  }
}

const addKey = (state: MemoryState["Service"], key: ArchiveKey): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (state.keys.has(key.id) || [...state.keys.values()].some(({ key_hash }) => key_hash === key.key_hash))
      return Effect.die(new Error("a key with this id or hash already exists"))
    state.keys.set(key.id, key)
    return Effect.void
  })

const deleteKey = (state: MemoryState["Service"], id: ApiKeyId): void => {
  state.keys.delete(id)
  state.lastUsed.delete(id)
}

const rotateKey = (
  state: MemoryState["Service"],
  record: RecordEvents
): WorkspaceStore["Service"]["rotateKey"] =>
  Effect.fnUntraced(function* (id, replacement, endsAt) {
    const key = state.keys.get(id)
    if (key === undefined) return yield* Effect.fail(KeyNotFound)
    if (key.workspace_id === null) return yield* Effect.fail(KeyUnassigned)
    if (!isActive(key, Date.parse(replacement.created_at))) return yield* Effect.fail(KeyEnded)
    const { workspace_id, created_by, name } = key
    yield* addKey(state, { ...replacement, workspace_id, created_by, name, revoked_at: null })
    const ended = { ...key, ...endKey(key, endsAt, replacement.created_at) }
    state.keys.set(id, ended)
    const info = toKeyInfo(state, ended)
    yield* record([audit.toKeyRotatedEntry(info, replacement)])
    return info
  })

const deleteUser = (
  state: MemoryState["Service"],
  record: RecordEvents
): WorkspaceStore["Service"]["deleteUser"] =>
  Effect.fnUntraced(function* (email, { now, withActiveKeys }) {
    const user = findUser(state, email)
    if (user === undefined) return yield* Effect.fail(UserNotFound)
    const keys = [...state.keys.values()].filter(({ created_by }) => created_by === user.id).sort(compareById)
    const active = keys.filter((key) => isActive(key, now)).length
    if (active > 0 && !withActiveKeys) return yield* Effect.fail(UserHasActiveKeys(active))
    const infos = keys.map((key) => toKeyInfo(state, key))
    for (const { id } of keys) deleteKey(state, id)
    state.users.delete(user.id)
    yield* record(audit.toUserDeletedEntries(user, infos))
    return { ...user, api_keys: keys.length }
  })

const compareNames = (a: { readonly name: string }, b: { readonly name: string }): number =>
  Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))

const makeWorkspaceStore = (
  state: MemoryState["Service"],
  record: RecordEvents
): WorkspaceStore["Service"] => ({
  workspaces: Effect.sync(() =>
    [...state.workspaces.values()].map(({ workspace }) => workspace).sort(compareById)
  ),
  addWorkspace: (workspace) =>
    Effect.suspend(() => {
      if (state.workspaces.has(workspace.id))
        return Effect.die(new Error("a workspace with this id already exists"))
      state.workspaces.set(workspace.id, {
        workspace: workspace as MemoryWorkspace["workspace"],
        folders: [],
        tags: [],
        fragments: [],
        prompts: []
      })
      return record([audit.toWorkspaceCreatedEntry(workspace)])
    }),
  setWorkspace: Effect.fnUntraced(function* (id, { name, tier, billing_status }) {
    const found = yield* findWorkspace(state, id)
    const { workspace } = found
    const updated = {
      ...workspace,
      name: name ?? workspace.name,
      tier: tier ?? workspace.tier,
      billing_status: billing_status ?? workspace.billing_status
    }
    state.workspaces.set(id, { ...found, workspace: updated })
    yield* record(audit.toWorkspaceChangedEntries(workspace, updated))
    return updated
  }),
  deleteWorkspace: Effect.fnUntraced(function* (id) {
    const { workspace, prompts } = yield* findWorkspace(state, id)
    const keys = listKeys(state, id)
    for (const key of keys) deleteKey(state, key.id)
    state.workspaces.delete(id)
    state.importedFiles.delete(id)
    const deleted = { ...workspace, prompts: prompts.length, api_keys: keys.length }
    yield* record([audit.toWorkspaceDeletedEntry(deleted)])
    return deleted
  }),
  users: (id) => Effect.map(findWorkspace(state, id), () => listOwners(state, listKeys(state, id))),
  setUser: (email, must_reset_password) =>
    Effect.suspend(() => {
      const user = findUser(state, email)
      if (user === undefined) return Effect.fail(UserNotFound)
      const updated = { ...user, must_reset_password }
      state.users.set(user.id, updated)
      return Effect.as(record(audit.toUserChangedEntries(user, updated)), updated)
    }),
  deleteUser: deleteUser(state, record),
  keys: (id) =>
    Effect.map(findWorkspace(state, id), () => listKeys(state, id).map((key) => toKeyInfo(state, key))),
  folders: (id) =>
    Effect.map(findWorkspace(state, id), ({ folders }) =>
      folders.toSorted((a, b) => compareNames(a, b) || compareById(a, b))
    ),
  tags: (id) => Effect.map(findWorkspace(state, id), ({ tags }) => tags.toSorted(compareNames)),
  revokeKey: (id, at) =>
    Effect.suspend(() => {
      const key = state.keys.get(id)
      if (key === undefined) return Effect.fail(KeyNotFound)
      const revoked = { ...key, revoked_at: key.revoked_at ?? at }
      state.keys.set(id, revoked)
      const info = toKeyInfo(state, revoked)
      return Effect.as(record(audit.toKeyRevokedEntries(key, info)), info)
    }),
  rotateKey: rotateKey(state, record),
  importWorkspace: importWorkspace(state, record),
  editContent: (id, makeEdit, options) =>
    Effect.gen(function* () {
      const [edit, result] = yield* makeEdit(toContent(state, yield* findWorkspace(state, id)))
      // Reads the workspace again, so that changes that were made while `makeEdit` ran are kept.
      const found = yield* findWorkspace(state, id)
      const { first, count } = findConflicts(state, editToArchive(found.workspace, edit))
      if (count > 0) return yield* Effect.fail(InvalidContent(first, count))
      if (options?.dryRun === true) return result
      if (!isEmptyEdit(edit)) {
        state.workspaces.set(id, applyEdit(found, edit))
        yield* record([audit.toWorkspaceEditedEntry(id, options?.source, edit)])
      }
      if (edit.importedFiles !== undefined) state.importedFiles.set(id, edit.importedFiles)
      return result
    }),
  recordExport: (id, format) =>
    Effect.flatMap(findWorkspace(state, id), ({ workspace }) =>
      record([audit.toWorkspaceExportedEntry(workspace, format)])
    ),
  exportWorkspace: (id, sink) =>
    Effect.flatMap(findWorkspace(state, id), (found) => sink([...toExportParts(toParts(state, found))])),
  readContent: (id) => Effect.map(findWorkspace(state, id), (found) => toContent(state, found)),
  addKey: Effect.fnUntraced(function* (workspaceId, { email, newUserId }, key) {
    yield* findWorkspace(state, workspaceId)
    const owner = findUser(state, email) ?? { id: newUserId, email, must_reset_password: false }
    const stored = { ...key, workspace_id: workspaceId, created_by: owner.id, revoked_at: null }
    yield* addKey(state, stored)
    state.users.set(owner.id, owner)
    yield* record([audit.toKeyIssuedEntry(toKeyInfo(state, stored))])
  }),
  auditEvents: ({ workspace, limit }) =>
    Effect.sync(() =>
      state.events
        .filter(({ workspace_id }) => workspace === undefined || workspace_id === workspace)
        .toReversed()
        .slice(0, limit)
    )
})

export const layer: Layer.Layer<WorkspaceStore, never, MemoryState | Actor> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const state = yield* MemoryState
    return makeWorkspaceStore(state, makeRecorder(state, yield* Actor))
  })
)
