import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import {
  type Archive,
  type ArchiveKey,
  type ArchivePart,
  type ArchivePrompt,
  type ArchiveUser,
  archiveFormat,
  archiveLists,
  archiveOf,
  BadArchive
} from "../../application/Archive.ts"
import { exportPartsOf } from "../../application/ArchiveExport.ts"
import { type ContentEdit, contentOf } from "../../application/WorkspaceContent.ts"
import {
  type KeyInfo,
  KeyNotFound,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../application/WorkspaceStore.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import { timestampOf } from "../../domain/Timestamp.ts"
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

const byId = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : 1)

const find = (state: State["Service"], id: WorkspaceId) =>
  Effect.suspend(() => {
    const found = state.workspaces.get(id)
    return found === undefined ? Effect.fail(WorkspaceNotFound) : Effect.succeed(found)
  })

const userOf = (state: State["Service"], email: string): ArchiveUser | undefined =>
  [...state.users.values()].find((user) => user.email.toLowerCase() === email.toLowerCase())

const keysOf = (state: State["Service"], workspace: WorkspaceId): ReadonlyArray<ArchiveKey> =>
  [...state.keys.values()].filter(({ workspace_id }) => workspace_id === workspace).sort(byId)

const keyInfo = (state: State["Service"], key: ArchiveKey): KeyInfo => {
  const used = state.lastUsed.get(key.id)
  return {
    id: key.id,
    name: key.name,
    key_start: key.key_start,
    key_end: key.key_end,
    owner: state.users.get(key.created_by)!.email,
    created_at: key.created_at,
    last_used_at: used === undefined ? null : timestampOf(used),
    revoked_at: key.revoked_at
  }
}

const inOrder = (prompt: ArchivePrompt): ArchivePrompt => ({
  ...prompt,
  tags: prompt.tags.toSorted(),
  fragments: prompt.fragments.toSorted(byId).sort((a, b) => a.position - b.position),
  versions: prompt.versions.toSorted((a, b) => a.version_number - b.version_number)
})

const storedParts = (state: State["Service"], content: Workspace): ReadonlyArray<ArchivePart> => {
  const api_keys = keysOf(state, content.workspace.id)
  const owners = new Set(api_keys.map(({ created_by }) => created_by))
  const users = [...owners].map((owner) => state.users.get(owner)!)
  const archive: Archive = { format: archiveFormat, ...content, users, api_keys }
  return [
    { list: "workspace", item: content.workspace },
    ...archiveLists
      .flatMap((list) => archive[list].toSorted(byId).map((item) => ({ list, item }) as ArchivePart))
      .map((part) => (part.list === "prompts" ? { ...part, item: inOrder(part.item) } : part))
  ]
}

const storedArchive = (state: State["Service"], content: Workspace): Archive =>
  archiveOf(storedParts(state, content))

/** The rows that an edit writes, as an archive. */
const archiveOfEdit = (workspace: Archive["workspace"], edit: ContentEdit): Archive => ({
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

/** Items with others added, or put in the place of those with the same id. */
const replaced = <A extends { readonly id: string }>(
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
    folders: replaced(content.folders, edit.folders),
    tags: replaced(content.tags, edit.tags),
    fragments: replaced(content.fragments, edit.fragments).filter(({ id }) => !removed.has(id)),
    prompts: replaced(content.prompts, prompts).map((prompt) =>
      prompt.fragments.some(({ fragment_id }) => removed.has(fragment_id))
        ? { ...prompt, fragments: prompt.fragments.filter(({ fragment_id }) => !removed.has(fragment_id)) }
        : prompt
    )
  }
}

const collect = <E>(parts: Stream.Stream<ArchivePart, E>): Effect.Effect<Archive, E> =>
  Effect.map(Stream.runCollect(parts), archiveOf)

const importArchive =
  (state: State["Service"]): WorkspaceStore["Service"]["importArchive"] =>
  (source, options) =>
    Effect.flatMap(Stream.isStream(source) ? collect(source) : Effect.succeed(source), (archive) => {
      const faults = conflicts(state, archive)
      if (faults.length > 0) return Effect.fail(BadArchive(faults))
      if (options?.dryRun !== true) importInto(state, archive)
      return Effect.void
    })

const workspaceStore = (state: State["Service"]): WorkspaceStore["Service"] => ({
  workspaces: Effect.sync(() => [...state.workspaces.values()].map(({ workspace }) => workspace).sort(byId)),
  addWorkspace: (workspace) =>
    Effect.suspend(() => {
      if (state.workspaces.has(workspace.id)) return Effect.die(new Error("the workspace is there already"))
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
    Effect.map(find(state, id), (found) => {
      const { workspace } = found
      const changed = {
        ...workspace,
        tier: tier ?? workspace.tier,
        billing_status: billing_status ?? workspace.billing_status
      }
      state.workspaces.set(id, { ...found, workspace: changed })
      return changed
    }),
  users: (id) =>
    Effect.map(find(state, id), () => {
      const owners = new Set(keysOf(state, id).map(({ created_by }) => created_by))
      return [...owners].map((owner) => state.users.get(owner)!).sort(byId)
    }),
  setUser: (email, must_reset_password) =>
    Effect.suspend(() => {
      const user = userOf(state, email)
      if (user === undefined) return Effect.fail(UserNotFound)
      const changed = { ...user, must_reset_password }
      state.users.set(user.id, changed)
      return Effect.succeed(changed)
    }),
  keys: (id) => Effect.map(find(state, id), () => keysOf(state, id).map((key) => keyInfo(state, key))),
  revokeKey: (id, at) =>
    Effect.suspend(() => {
      const key = state.keys.get(id)
      if (key === undefined) return Effect.fail(KeyNotFound)
      const revoked = { ...key, revoked_at: key.revoked_at ?? at }
      state.keys.set(id, revoked)
      return Effect.succeed(keyInfo(state, revoked))
    }),
  importArchive: importArchive(state),
  reviseContent: (id, revise, options) =>
    Effect.gen(function* () {
      const [edit, result] = yield* revise(contentOf(storedArchive(state, yield* find(state, id))))
      // What others have changed while `revise` ran stays.
      const found = yield* find(state, id)
      const faults = conflicts(state, archiveOfEdit(found.workspace, edit))
      if (faults.length > 0) return yield* Effect.fail(BadArchive(faults))
      if (options?.dryRun !== true) state.workspaces.set(id, applyEdit(found, edit))
      return result
    }),
  exportArchive: (id, sink) =>
    Effect.flatMap(find(state, id), (found) => sink([...exportPartsOf(storedParts(state, found))])),
  readContent: (id) => Effect.map(find(state, id), (found) => contentOf(storedArchive(state, found))),
  addKey: (workspaceId, { email, newUserId }, key) =>
    Effect.suspend(() => {
      if (!state.workspaces.has(workspaceId)) return Effect.fail(WorkspaceNotFound)
      if (
        state.keys.has(key.id) ||
        [...state.keys.values()].some(({ key_hash }) => key_hash === key.key_hash)
      )
        return Effect.die(new Error("the key is there already"))
      const owner = userOf(state, email)
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
