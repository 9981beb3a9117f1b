import {
  type Archive,
  type ArchiveKey,
  type ArchivePrompt,
  type ArchiveUser,
  archiveFormat,
  archiveFromParts
} from "../../../application/formats/Archive.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { type WorkspacePart, workspaceLists } from "../../../domain/workspace/WorkspaceParts.ts"
import {
  type ContentEdit,
  toEditedParts,
  toWorkspaceContent,
  type WorkspaceContent
} from "../../../domain/workspace/WorkspaceContent.ts"
import type { MemoryState, MemoryWorkspace } from "./MemoryState.ts"

export const compareById = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : 1

/** Returns the keys of a workspace, ordered by id. */
export const listKeys = (state: MemoryState["Service"], workspace: WorkspaceId): ReadonlyArray<ArchiveKey> =>
  [...state.keys.values()].filter(({ workspace_id }) => workspace_id === workspace).sort(compareById)

/** Returns the owner of a key. The owner is never missing, because deleting a user also deletes the user's keys. */
export const getOwner = (state: MemoryState["Service"], { id, created_by }: ArchiveKey): ArchiveUser => {
  const owner = state.users.get(created_by)
  if (owner === undefined) throw new Error(`the owner of key ${id} is missing`)
  return owner
}

/** Returns the owners of some keys without duplicates, ordered by id. */
export const listOwners = (
  state: MemoryState["Service"],
  keys: ReadonlyArray<ArchiveKey>
): ReadonlyArray<ArchiveUser> => [...new Set(keys.map((key) => getOwner(state, key)))].sort(compareById)

const sortPrompt = (prompt: ArchivePrompt): ArchivePrompt => ({
  ...prompt,
  tags: prompt.tags.toSorted(),
  fragments: prompt.fragments.toSorted(compareById).sort((a, b) => a.position - b.position),
  versions: prompt.versions.toSorted((a, b) => a.version_number - b.version_number)
})

/** Returns the parts of a workspace in the order of an archive. */
export const toParts = (
  state: MemoryState["Service"],
  content: MemoryWorkspace
): ReadonlyArray<WorkspacePart> => {
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

/** Returns the content of a workspace in the form that `WorkspaceStore.editContent` passes to `makeEdit`. */
export const toContent = (state: MemoryState["Service"], content: MemoryWorkspace): WorkspaceContent =>
  toWorkspaceContent(toArchive(state, content), state.importedFiles.get(content.workspace.id))

const toArchive = (state: MemoryState["Service"], content: MemoryWorkspace): Archive =>
  archiveFromParts(toParts(state, content))

/** Returns an archive that contains the rows of an edit. */
export const editToArchive = (workspace: Archive["workspace"], edit: ContentEdit): Archive =>
  archiveFromParts([{ list: "workspace", item: workspace }, ...toEditedParts(edit)])

/** Adds `others` to `items`. An item of `others` replaces an item with the same id. */
const upsert = <A extends { readonly id: string }>(
  items: ReadonlyArray<A>,
  others: ReadonlyArray<A>
): ReadonlyArray<A> => [...new Map([...items, ...others].map((item) => [item.id, item])).values()]

export const applyEdit = (content: MemoryWorkspace, edit: ContentEdit): MemoryWorkspace => {
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
