import * as Equal from "effect/Equal"
import type { FolderId } from "../../domain/FolderId.ts"
import type { PromptId, TagId } from "../../domain/Prompt.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../../domain/Version.ts"
import type { Fragment, PromptVersion } from "../../domain/workspace/Workspace.ts"
import {
  type ContentEdit,
  type CurrentPrompt,
  emptyHistory,
  type PromptEdit,
  type WorkspaceContent
} from "../../domain/workspace/WorkspaceContent.ts"
import {
  type ContentFile,
  type ContentItem,
  type FileChange,
  getContent,
  getName,
  type PromptState,
  toFileKey
} from "./ContentFile.ts"
import { toImportedFiles } from "./FileRecords.ts"

/** The values that a merge cannot compute: the current time, and new ids. */
export interface MergeContext {
  readonly now: Timestamp
  readonly newId: () => string
}

/** The edit that makes a workspace match files, and the changes that operators see. */
export interface FileMerge {
  readonly edit: ContentEdit
  readonly changes: ReadonlyArray<FileChange>
}

/**
 * Returns the change that gives a prompt or a fragment the state of its file. Returns undefined if the prompt or
 * fragment already has that state and is not archived.
 */
const compareFile = (
  { id, path, state: after }: ContentFile,
  item: ContentItem | undefined
): FileChange | undefined => {
  const before = item?.state ?? null
  if (item?.isArchived === false && Equal.equals(before, after)) return undefined
  const isNewVersion =
    after.kind === "prompt" && before !== null && getContent(before) !== after.current_content
  const change = before === null ? "added" : isNewVersion ? "new version" : "changed"
  return { kind: after.kind, id, path, name: getName(after), change, before, after }
}

/**
 * Returns the changes that make the items of a workspace equal to files. A prompt without a file is archived. A
 * fragment without a file is removed, except if a prompt without a file contains the fragment.
 */
const findChanges = (
  items: ReadonlyMap<string, ContentItem>,
  files: ReadonlyArray<ContentFile>
): ReadonlyArray<FileChange> => {
  const fileKeys = new Set(files.map(toFileKey))
  const withoutFile = [...items].flatMap(([key, item]) => (fileKeys.has(key) ? [] : [item]))
  const needed = new Set(
    withoutFile.flatMap(({ state }) =>
      state.kind === "prompt" ? state.fragments.map(({ fragment_id }) => fragment_id) : []
    )
  )
  return [
    ...files.flatMap((file) => compareFile(file, items.get(toFileKey(file))) ?? []),
    ...withoutFile
      .filter(({ id, isArchived, state }) => (state.kind === "prompt" ? !isArchived : !needed.has(id)))
      .map(({ id, state }): FileChange => {
        const change = state.kind === "prompt" ? "archived" : "removed"
        return { kind: state.kind, id, path: null, name: getName(state), change, before: state, after: null }
      })
  ]
}

/**
 * Indexes folders or tags by name, because files refer to them by name. If several items have the same name, the first
 * is used.
 */
const makeNamedItems = <A extends { readonly id: string; readonly name: string }>(
  items: ReadonlyArray<A>,
  create: (name: string) => A
) => {
  const byName = new Map(items.toReversed().map((item) => [item.name, item]))
  const added: Array<A> = []
  return {
    added,
    /** Returns the id of the item with a name. If no item has the name, adds a new item. */
    findOrAdd: (name: string): A["id"] => {
      const existing = byName.get(name)
      if (existing !== undefined) return existing.id
      const item = create(name)
      byName.set(name, item)
      added.push(item)
      return item.id
    }
  }
}

/**
 * Creates the version with a prompt's new content. Its parent is the current version. If no version has the number
 * `current_version`, the parent is the last version, but only if the last version has a higher number. Otherwise, the
 * new version has no parent.
 */
const makeVersion = (
  content: string,
  current_version: number,
  { current_id, last }: CurrentPrompt["history"],
  { now, newId }: MergeContext
): PromptVersion => ({
  id: newId() as VersionId,
  version_number: (Math.max(current_version, 0, last?.version_number ?? 0) + 1) as VersionNumber,
  content,
  change_summary: "",
  change_source: "import",
  parent_version_id: current_id ?? (last !== null && last.version_number > current_version ? last.id : null),
  metadata: {},
  created_at: now
})

/**
 * The context in which prompts are edited. `findFolder` and `findTag` return the id of the folder or tag with a name.
 * If there is none, they add it.
 */
interface PromptEditContext extends MergeContext {
  readonly findFolder: (name: string) => FolderId
  readonly findTag: (name: string) => TagId
}

const archivePrompt = (
  { tags: _, fragments: __, history: ___, ...row }: CurrentPrompt,
  { now }: MergeContext
): PromptEdit => ({
  row: { ...row, is_archived: true, updated_at: now },
  tags: undefined,
  fragments: undefined,
  version: undefined
})

/** Returns the edit that gives a prompt the state `after`. If `existing` is undefined, the edit creates the prompt. */
const editPrompt = (
  { id, before, after }: Pick<FileChange, "id" | "before"> & { readonly after: PromptState },
  existing: CurrentPrompt | undefined,
  context: PromptEditContext
): PromptEdit => {
  const { kind: _, folder, tags, fragments, ...fields } = after
  const old = before?.kind === "prompt" ? before : undefined
  const current_version = existing?.current_version ?? 0
  const version =
    old?.current_content === after.current_content
      ? undefined
      : makeVersion(after.current_content, current_version, existing?.history ?? emptyHistory, context)
  // Several folders may have the same name. A prompt therefore stays in its folder if its file states the name of that
  // folder.
  const keepsFolder = existing !== undefined && old?.folder === folder
  return {
    row: {
      id: id as PromptId,
      ...fields,
      current_version: version?.version_number ?? current_version,
      folder_id: keepsFolder ? existing.folder_id : folder === null ? null : context.findFolder(folder),
      is_archived: false,
      created_at: existing?.created_at ?? context.now,
      updated_at: context.now
    },
    tags: Equal.equals(old?.tags ?? [], tags) ? undefined : tags.map(context.findTag),
    fragments: Equal.equals(old?.fragments ?? [], fragments)
      ? undefined
      : fragments.map((fragment, index) => ({
          ...fragment,
          id: existing?.fragments[index]?.id ?? context.newId(),
          position: index + 1
        })),
    version
  }
}

/**
 * Returns the edit that makes a workspace equal to files that `matchFiles` has matched with its items. Each prompt and
 * fragment becomes what its file describes, and the changed content of a prompt becomes a new version. A prompt without
 * a file is archived. A fragment without a file is removed, except if a prompt without a file contains the fragment.
 * The edit names only rows that differ from the files.
 */
export const applyFiles = (
  content: WorkspaceContent,
  items: ReadonlyMap<string, ContentItem>,
  files: ReadonlyArray<ContentFile>,
  context: MergeContext
): FileMerge => {
  const { newId } = context
  const folders = makeNamedItems(content.folders, (name) => ({ id: newId() as FolderId, name }))
  const tags = makeNamedItems(content.tags, (name) => ({ id: newId() as TagId, name, color: "#808080" }))
  const editContext = { ...context, findFolder: folders.findOrAdd, findTag: tags.findOrAdd }
  const existing = new Map<string, CurrentPrompt>(content.prompts.map((prompt) => [prompt.id, prompt]))
  const changes = findChanges(items, files)
  const fragments: Array<Fragment> = []
  const removedFragments: Array<string> = []
  const prompts: Array<PromptEdit> = []
  for (const { kind, id, before, after } of changes) {
    const prompt = existing.get(id)
    if (after?.kind === "fragment") fragments.push({ id, name: after.name, content: after.content })
    else if (kind === "fragment") removedFragments.push(id)
    else if (after !== null) prompts.push(editPrompt({ id, before, after }, prompt, editContext))
    else if (prompt !== undefined) prompts.push(archivePrompt(prompt, context))
  }
  const importedFiles = toImportedFiles(files)
  return {
    edit: { folders: folders.added, tags: tags.added, fragments, removedFragments, prompts, importedFiles },
    changes
  }
}
