import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import {
  type Archive,
  type ArchiveKey,
  type ArchivePrompt,
  type ArchiveUser,
  archiveFormat,
  archiveFromParts
} from "../../../application/formats/Archive.ts"
import { Actor } from "../../../application/administration/Actor.ts"
import { type ApiKeyId, endKey, isActive } from "../../../domain/ApiKey.ts"
import * as audit from "../../../domain/AuditEvent.ts"
import { addPart, emptySummary } from "../../../domain/ImportSummary.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { type WorkspacePart, toExportParts, workspaceLists } from "../../../domain/WorkspaceParts.ts"
import { InvalidContent } from "../../../domain/Problem.ts"
import {
  type ContentEdit,
  isEmptyEdit,
  toWorkspaceContent,
  type WorkspaceContent
} from "../../../domain/WorkspaceContent.ts"
import {
  type ChangeOptions,
  type KeyInfo,
  KeyNotFound,
  KeyEnded,
  KeyUnassigned,
  UserHasActiveKeys,
  type RowCounts,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../application/ports/WorkspaceStore.ts"
import { type Timestamp, toTimestamp } from "../../../domain/Timestamp.ts"
import { findConflicts } from "./MemoryImportConflicts.ts"
import { MemoryState, type MemoryWorkspace } from "./MemoryState.ts"

/** Returns the earlier of two times; null is later than every time. */
const earlier = (a: Timestamp | null, b: Timestamp | null): Timestamp | null =>
  a === null || (b !== null && b < a) ? b : a

/**
 * Updates a key by an import. An existing key keeps its hash, owner and workspace, stays revoked, and never expires
 * later; otherwise an import could undo a revocation or a forced reset, or give a key without a workspace access to
 * one.
 */
const mergeKey = (existing: ArchiveKey | undefined, key: ArchiveKey): ArchiveKey =>
  existing === undefined
    ? key
    : {
        ...existing,
        name: key.name,
        revoked_at: existing.revoked_at ?? key.revoked_at,
        expires_at: earlier(existing.expires_at, key.expires_at)
      }

/** Updates a user by an import, which can force a password reset but never cancel one. */
const mergeUser = (existing: ArchiveUser | undefined, user: ArchiveUser): ArchiveUser =>
  existing === undefined
    ? user
    : { ...existing, must_reset_password: existing.must_reset_password || user.must_reset_password }

/** Updates a workspace by an import. An existing workspace keeps its tier and billing status. */
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

const compareById = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : 1)

const findWorkspace = (state: MemoryState["Service"], id: WorkspaceId) =>
  Effect.suspend(() => {
    const found = state.workspaces.get(id)
    return found === undefined ? Effect.fail(WorkspaceNotFound) : Effect.succeed(found)
  })

const findUser = (state: MemoryState["Service"], email: string): ArchiveUser | undefined =>
  [...state.users.values()].find((user) => user.email.toLowerCase() === email.toLowerCase())

const listKeys = (state: MemoryState["Service"], workspace: WorkspaceId): ReadonlyArray<ArchiveKey> =>
  [...state.keys.values()].filter(({ workspace_id }) => workspace_id === workspace).sort(compareById)

/** Returns the owner of a key. A key is stored with its owner and deleted with its owner. */
const getOwner = (state: MemoryState["Service"], { id, created_by }: ArchiveKey): ArchiveUser => {
  const owner = state.users.get(created_by)
  if (owner === undefined) throw new Error(`the owner of key ${id} is missing`)
  return owner
}

/** Returns the owners of keys, each once, ordered by id. */
const listOwners = (
  state: MemoryState["Service"],
  keys: ReadonlyArray<ArchiveKey>
): ReadonlyArray<ArchiveUser> => [...new Set(keys.map((key) => getOwner(state, key)))].sort(compareById)

const toKeyInfo = (state: MemoryState["Service"], key: ArchiveKey): KeyInfo => {
  const used = state.lastUsed.get(key.id)
  return {
    id: key.id,
    workspace_id: key.workspace_id,
    name: key.name,
    key_start: key.key_start,
    key_end: key.key_end,
    owner: getOwner(state, key).email,
    created_at: key.created_at,
    expires_at: key.expires_at,
    last_used_at: used === undefined ? null : toTimestamp(used),
    revoked_at: key.revoked_at
  }
}

const sortPrompt = (prompt: ArchivePrompt): ArchivePrompt => ({
  ...prompt,
  tags: prompt.tags.toSorted(),
  fragments: prompt.fragments.toSorted(compareById).sort((a, b) => a.position - b.position),
  versions: prompt.versions.toSorted((a, b) => a.version_number - b.version_number)
})

const toParts = (state: MemoryState["Service"], content: MemoryWorkspace): ReadonlyArray<WorkspacePart> => {
  const api_keys = listKeys(state, content.workspace.id)
  const users = listOwners(state, api_keys)
  const archive: Archive = { format: archiveFormat, ...content, users, api_keys }
  return [
    { list: "workspace", item: content.workspace },
    ...workspaceLists
      .flatMap((list) => archive[list].toSorted(compareById).map((item) => ({ list, item }) as WorkspacePart))
      .map((part) => (part.list === "prompts" ? { ...part, item: sortPrompt(part.item) } : part))
  ]
}

const toContent = (state: MemoryState["Service"], content: MemoryWorkspace): WorkspaceContent =>
  toWorkspaceContent(toArchive(state, content), state.importedFiles.get(content.workspace.id))

const toArchive = (state: MemoryState["Service"], content: MemoryWorkspace): Archive =>
  archiveFromParts(toParts(state, content))

/** Converts the rows that an edit writes to an archive. */
const editToArchive = (workspace: Archive["workspace"], edit: ContentEdit): Archive => ({
  format: archiveFormat,
  workspace,
  users: [],
  api_keys: [],
  folders: edit.folders,
  tags: edit.tags,
  fragments: edit.fragments,
  prompts: edit.prompts.map(({ row, tags, fragments, version }) => ({
    ...row,
    tags: tags ?? [],
    fragments: fragments ?? [],
    versions: version === undefined ? [] : [version]
  }))
})

/** Returns the items with others added; items with the same id are replaced. */
const upsert = <A extends { readonly id: string }>(
  items: ReadonlyArray<A>,
  others: ReadonlyArray<A>
): ReadonlyArray<A> => [...new Map([...items, ...others].map((item) => [item.id, item])).values()]

const applyEdit = (content: MemoryWorkspace, edit: ContentEdit): MemoryWorkspace => {
  const existing = new Map(content.prompts.map((prompt) => [prompt.id, prompt]))
  const removed = new Set(edit.removedFragments)
  const prompts = edit.prompts.map(({ row, tags, fragments, version }): ArchivePrompt => {
    const prompt = existing.get(row.id)
    return {
      ...row,
      tags: tags ?? prompt?.tags ?? [],
      fragments: fragments ?? prompt?.fragments ?? [],
      versions: [...(prompt?.versions ?? []), ...(version === undefined ? [] : [version])]
    }
  })
  return {
    workspace: content.workspace,
    folders: upsert(content.folders, edit.folders),
    tags: upsert(content.tags, edit.tags),
    fragments: upsert(content.fragments, edit.fragments).filter(({ id }) => !removed.has(id)),
    prompts: upsert(content.prompts, prompts).map((prompt) =>
      prompt.fragments.some(({ fragment_id }) => removed.has(fragment_id))
        ? { ...prompt, fragments: prompt.fragments.filter(({ fragment_id }) => !removed.has(fragment_id)) }
        : prompt
    )
  }
}

type RecordEvents = (entries: ReadonlyArray<audit.AuditEntry>) => Effect.Effect<void>

/** Returns a function that appends entries to the audit log. */
const makeRecorder = ({ events }: MemoryState["Service"], actor: string): RecordEvents =>
  Effect.fnUntraced(function* (entries) {
    const at = toTimestamp(yield* Clock.currentTimeMillis)
    for (const entry of entries) events.push({ id: String(events.length + 1), at, actor, ...entry })
  })

/** The rows of a workspace, each by its table and id. */
type Rows = ReadonlyMap<string, object>

/** Returns the rows of an archive's workspace, users and keys. */
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

/** Counts the rows by which two states differ. The tags of a removed prompt are not counted. */
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

const importWorkspace = (
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
    // A dry run changes a copy.
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
      // Reads the workspace again, so that changes made while `makeEdit` ran are kept.
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

/** The workspaces, users and keys of the in-memory store. */
export const layer: Layer.Layer<WorkspaceStore, never, MemoryState> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const state = yield* MemoryState
    return makeWorkspaceStore(state, makeRecorder(state, yield* Actor))
  })
)
