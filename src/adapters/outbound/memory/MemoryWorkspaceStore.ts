import * as Effect from "effect/Effect"
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
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { type WorkspacePart, toExportParts, workspaceLists } from "../../../domain/WorkspaceParts.ts"
import { InvalidContent } from "../../../domain/Problem.ts"
import { type ContentEdit, toWorkspaceContent } from "../../../domain/WorkspaceContent.ts"
import {
  type KeyInfo,
  KeyNotFound,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../application/ports/WorkspaceStore.ts"
import { toTimestamp } from "../../../domain/Timestamp.ts"
import { findConflicts } from "./MemoryImportConflicts.ts"
import { State, type Workspace } from "./MemoryState.ts"

/**
 * Updates a key by an import. An existing key keeps its hash, owner and workspace; otherwise an import could undo a
 * revocation or a forced reset, or give a key without a workspace access to one.
 */
const mergeKey = (existing: ArchiveKey | undefined, key: ArchiveKey): ArchiveKey =>
  existing === undefined
    ? key
    : { ...existing, name: key.name, revoked_at: existing.revoked_at ?? key.revoked_at }

/** Updates a user by an import, which can force a password reset but never cancel one. */
const mergeUser = (existing: ArchiveUser | undefined, user: ArchiveUser): ArchiveUser =>
  existing === undefined
    ? user
    : { ...existing, must_reset_password: existing.must_reset_password || user.must_reset_password }

/** Updates a workspace by an import. An existing workspace keeps its tier and billing status. */
const mergeWorkspace = (existing: Workspace["workspace"] | undefined, workspace: Workspace["workspace"]) =>
  existing === undefined
    ? workspace
    : { ...workspace, tier: existing.tier, billing_status: existing.billing_status }

const applyImport = (state: State["Service"], archive: Archive): void => {
  const { format: _, users, api_keys, workspace, ...content } = archive
  const existing = state.workspaces.get(workspace.id)?.workspace
  state.workspaces.set(workspace.id, { workspace: mergeWorkspace(existing, workspace), ...content })
  for (const user of users) state.users.set(user.id, mergeUser(state.users.get(user.id), user))
  for (const key of api_keys) state.keys.set(key.id, mergeKey(state.keys.get(key.id), key))
}

const compareById = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : 1)

const findWorkspace = (state: State["Service"], id: WorkspaceId) =>
  Effect.suspend(() => {
    const found = state.workspaces.get(id)
    return found === undefined ? Effect.fail(WorkspaceNotFound) : Effect.succeed(found)
  })

const findUser = (state: State["Service"], email: string): ArchiveUser | undefined =>
  [...state.users.values()].find((user) => user.email.toLowerCase() === email.toLowerCase())

const listKeys = (state: State["Service"], workspace: WorkspaceId): ReadonlyArray<ArchiveKey> =>
  [...state.keys.values()].filter(({ workspace_id }) => workspace_id === workspace).sort(compareById)

/** Returns the owner of a key. Users are never removed, and a key is stored with its owner. */
const getOwner = (state: State["Service"], { id, created_by }: ArchiveKey): ArchiveUser => {
  const owner = state.users.get(created_by)
  if (owner === undefined) throw new Error(`the owner of key ${id} is missing`)
  return owner
}

/** Returns the owners of keys, each once, ordered by id. */
const listOwners = (state: State["Service"], keys: ReadonlyArray<ArchiveKey>): ReadonlyArray<ArchiveUser> =>
  [...new Set(keys.map((key) => getOwner(state, key)))].sort(compareById)

const toKeyInfo = (state: State["Service"], key: ArchiveKey): KeyInfo => {
  const used = state.lastUsed.get(key.id)
  return {
    id: key.id,
    name: key.name,
    key_start: key.key_start,
    key_end: key.key_end,
    owner: getOwner(state, key).email,
    created_at: key.created_at,
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

const toParts = (state: State["Service"], content: Workspace): ReadonlyArray<WorkspacePart> => {
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

const toArchive = (state: State["Service"], content: Workspace): Archive =>
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

const applyEdit = (content: Workspace, edit: ContentEdit): Workspace => {
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

const collect = <E>(parts: Stream.Stream<WorkspacePart, E>): Effect.Effect<Archive, E> =>
  Effect.map(Stream.runCollect(parts), archiveFromParts)

const importWorkspace =
  (state: State["Service"]): WorkspaceStore["Service"]["importWorkspace"] =>
  (parts, options) =>
    Effect.flatMap(collect(parts), (archive) => {
      const { first, count } = findConflicts(state, archive)
      if (count > 0) return Effect.fail(InvalidContent(first, count))
      if (options?.dryRun !== true) applyImport(state, archive)
      return Effect.void
    })

const makeWorkspaceStore = (state: State["Service"]): WorkspaceStore["Service"] => ({
  workspaces: Effect.sync(() =>
    [...state.workspaces.values()].map(({ workspace }) => workspace).sort(compareById)
  ),
  addWorkspace: (workspace) =>
    Effect.suspend(() => {
      if (state.workspaces.has(workspace.id))
        return Effect.die(new Error("a workspace with this id already exists"))
      state.workspaces.set(workspace.id, {
        workspace: workspace as Workspace["workspace"],
        folders: [],
        tags: [],
        fragments: [],
        prompts: []
      })
      return Effect.void
    }),
  setWorkspace: (id, { tier, billing_status }) =>
    Effect.map(findWorkspace(state, id), (found) => {
      const { workspace } = found
      const updated = {
        ...workspace,
        tier: tier ?? workspace.tier,
        billing_status: billing_status ?? workspace.billing_status
      }
      state.workspaces.set(id, { ...found, workspace: updated })
      return updated
    }),
  users: (id) => Effect.map(findWorkspace(state, id), () => listOwners(state, listKeys(state, id))),
  setUser: (email, must_reset_password) =>
    Effect.suspend(() => {
      const user = findUser(state, email)
      if (user === undefined) return Effect.fail(UserNotFound)
      const updated = { ...user, must_reset_password }
      state.users.set(user.id, updated)
      return Effect.succeed(updated)
    }),
  keys: (id) =>
    Effect.map(findWorkspace(state, id), () => listKeys(state, id).map((key) => toKeyInfo(state, key))),
  revokeKey: (id, at) =>
    Effect.suspend(() => {
      const key = state.keys.get(id)
      if (key === undefined) return Effect.fail(KeyNotFound)
      const revoked = { ...key, revoked_at: key.revoked_at ?? at }
      state.keys.set(id, revoked)
      return Effect.succeed(toKeyInfo(state, revoked))
    }),
  importWorkspace: importWorkspace(state),
  reviseContent: (id, revise, options) =>
    Effect.gen(function* () {
      const [edit, result] = yield* revise(
        toWorkspaceContent(toArchive(state, yield* findWorkspace(state, id)))
      )
      // Reads the workspace again, so that changes made while `revise` ran are kept.
      const found = yield* findWorkspace(state, id)
      const { first, count } = findConflicts(state, editToArchive(found.workspace, edit))
      if (count > 0) return yield* Effect.fail(InvalidContent(first, count))
      if (options?.dryRun !== true) state.workspaces.set(id, applyEdit(found, edit))
      return result
    }),
  exportWorkspace: (id, sink) =>
    Effect.flatMap(findWorkspace(state, id), (found) => sink([...toExportParts(toParts(state, found))])),
  readContent: (id) =>
    Effect.map(findWorkspace(state, id), (found) => toWorkspaceContent(toArchive(state, found))),
  addKey: (workspaceId, { email, newUserId }, key) =>
    Effect.suspend(() => {
      if (!state.workspaces.has(workspaceId)) return Effect.fail(WorkspaceNotFound)
      if (
        state.keys.has(key.id) ||
        [...state.keys.values()].some(({ key_hash }) => key_hash === key.key_hash)
      )
        return Effect.die(new Error("a key with this id or hash already exists"))
      const owner = findUser(state, email)
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

/** The workspaces, users and keys of the in-memory store. */
export const layer: Layer.Layer<WorkspaceStore, never, State> = Layer.effect(
  WorkspaceStore,
  Effect.map(State, makeWorkspaceStore)
)
