import * as Equal from "effect/Equal"
import type { FolderId } from "../../../domain/FolderId.ts"
import type { TagId } from "../../../domain/Prompt.ts"
import type { Timestamp } from "../../../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../../../domain/Version.ts"
import type { Folder, PromptFragment, PromptVersion, WorkspaceTag } from "../../../domain/Workspace.ts"
import {
  type ContentEdit,
  type CurrentPrompt,
  emptyHistory,
  type PromptEdit,
  type PromptRow,
  type WorkspaceContent
} from "../../../domain/WorkspaceContent.ts"
import { toImportedFiles } from "./FileRecords.ts"
import {
  type FragmentChange,
  type FileChange,
  makeStateReader,
  type PromptChange,
  type PromptFile,
  type PromptFiles,
  type PromptState,
  toFragmentFields,
  toFragmentState,
  toPromptFields,
  toPromptState
} from "./PromptFiles.ts"

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

/** Items that files refer to by name. Of several items with the same name, the first is used. */
interface NamedItems<A> {
  readonly added: ReadonlyArray<A>
  /** Returns the item with a name. Adds the item if there is none. */
  readonly findOrAdd: (name: string) => A
}

const makeNamedItems = <A extends { readonly name: string }>(
  items: ReadonlyArray<A>,
  create: (name: string) => A
): NamedItems<A> => {
  const byName = new Map<string, A>()
  for (const item of items) if (!byName.has(item.name)) byName.set(item.name, item)
  const added: Array<A> = []
  return {
    added,
    findOrAdd: (name) => {
      const existing = byName.get(name)
      if (existing !== undefined) return existing
      const item = create(name)
      byName.set(name, item)
      added.push(item)
      return item
    }
  }
}

interface Folders extends NamedItems<Folder> {
  readonly names: ReadonlyMap<FolderId, string>
}

const makeFolders = (folders: ReadonlyArray<Folder>, { newId }: MergeContext): Folders => ({
  ...makeNamedItems(folders, (name) => ({ id: newId() as FolderId, name })),
  names: new Map(folders.map(({ id, name }) => [id, name]))
})

/** Returns the id of the file's folder. A prompt stays in its folder if several folders have the name. */
const mergeFolder = (
  file: PromptFile,
  existing: CurrentPrompt | undefined,
  folders: Folders
): FolderId | null => {
  if (file.folder === null) return null
  const current = existing?.folder_id ?? null
  return current !== null && folders.names.get(current) === file.folder
    ? current
    : folders.findOrAdd(file.folder).id
}

/** Returns the ids of the file's tags, or the existing list if it has the same tags. */
const mergeTags = (
  file: PromptFile,
  existing: ReadonlyArray<TagId>,
  tags: NamedItems<WorkspaceTag>
): ReadonlyArray<TagId> => {
  const ids = [...new Set(file.tags)].map((name) => tags.findOrAdd(name).id)
  return ids.length === existing.length && ids.every((id) => existing.includes(id)) ? existing : ids
}

/**
 * Returns the rows of the file's fragments, or the existing rows if they have the same fragments in the same order.
 * Rows of fragments that stay keep their ids.
 */
const mergeFragments = (
  file: PromptFile,
  existing: ReadonlyArray<PromptFragment>,
  { newId }: MergeContext
): ReadonlyArray<PromptFragment> => {
  const current = existing.map(({ fragment_id, variable_overrides }) => ({ fragment_id, variable_overrides }))
  if (Equal.equals(current, file.fragments)) return existing
  const unused = [...existing]
  return file.fragments.map((fragment, index) => {
    const at = unused.findIndex(({ fragment_id }) => fragment_id === fragment.fragment_id)
    const [reused] = at === -1 ? [] : unused.splice(at, 1)
    return { ...fragment, id: reused?.id ?? newId(), position: index + 1 }
  })
}

/** Returns the prompt to merge a file into if the prompt does not exist yet. */
const makePrompt = (file: PromptFile, { now }: MergeContext): CurrentPrompt => {
  const { folder: _, ...fields } = toPromptFields(file)
  return {
    ...fields,
    current_version: 0,
    folder_id: null,
    is_archived: false,
    created_at: now,
    updated_at: now,
    tags: [],
    fragments: [],
    history: emptyHistory
  }
}

/** Creates the version of a prompt's new content, a child of its current version. */
const makeVersion = (
  { current_version, current_content, history: { current_id, last } }: CurrentPrompt,
  { now, newId }: MergeContext
): PromptVersion => ({
  id: newId() as VersionId,
  version_number: (Math.max(current_version, 0, last?.version_number ?? 0) + 1) as VersionNumber,
  content: current_content,
  change_summary: "",
  change_source: "import",
  parent_version_id: current_id ?? (last !== null && last.version_number > current_version ? last.id : null),
  metadata: {},
  created_at: now
})

/** Returns the row of a prompt, without its lists. */
const toRow = ({ tags: _, fragments: __, history: ___, ...row }: CurrentPrompt): PromptRow => row

interface PromptMerge {
  readonly edit: PromptEdit
  readonly change: PromptChange
}

/** Returns the state of an existing prompt. */
type ReadState = (prompt: CurrentPrompt) => PromptState

/** Merges a file into its prompt. Returns `undefined` if the prompt already matches the file. */
const mergePrompt = (
  file: PromptFile,
  existing: CurrentPrompt | undefined,
  folders: Folders,
  tags: NamedItems<WorkspaceTag>,
  readState: ReadState,
  context: MergeContext
): PromptMerge | undefined => {
  const { folder: _, tags: __, fragments: ___, ...fields } = toPromptFields(file)
  const base = existing ?? makePrompt(file, context)
  const mergedTags = mergeTags(file, base.tags, tags)
  const merged: CurrentPrompt = {
    ...base,
    ...fields,
    folder_id: mergeFolder(file, existing, folders),
    is_archived: false,
    tags: mergedTags,
    fragments: mergeFragments(file, base.fragments, context)
  }
  if (existing !== undefined && Equal.equals(merged, existing)) return undefined
  const isNewContent = existing === undefined || merged.current_content !== existing.current_content
  const version = isNewContent ? makeVersion(merged, context) : undefined
  return {
    change: {
      kind: "prompt",
      id: file.id,
      path: file.path,
      name: file.title,
      change: existing === undefined ? "added" : isNewContent ? "new version" : "changed",
      before: existing === undefined ? null : readState(existing),
      after: toPromptState(file)
    },
    edit: {
      row: {
        ...toRow(merged),
        current_version: version?.version_number ?? merged.current_version,
        updated_at: context.now
      },
      tags: merged.tags === base.tags ? undefined : merged.tags,
      fragments: merged.fragments === base.fragments ? undefined : merged.fragments,
      version
    }
  }
}

/** Archives a prompt without a file. Returns `undefined` if the prompt is archived already. */
const archivePrompt = (
  prompt: CurrentPrompt,
  readState: ReadState,
  { now }: MergeContext
): PromptMerge | undefined =>
  prompt.is_archived
    ? undefined
    : {
        change: {
          kind: "prompt",
          id: prompt.id,
          path: null,
          name: prompt.title,
          change: "archived",
          before: readState(prompt),
          after: null
        },
        edit: {
          row: { ...toRow(prompt), is_archived: true, updated_at: now },
          tags: undefined,
          fragments: undefined,
          version: undefined
        }
      }

/** Returns the prompts that have no file. */
const findPromptsWithoutFile = (
  content: WorkspaceContent,
  files: PromptFiles
): ReadonlyArray<CurrentPrompt> => {
  const ids = new Set(files.prompts.map(({ id }) => id))
  return content.prompts.filter(({ id }) => !ids.has(id))
}

/** Merges the files of prompts, then archives the prompts without a file. */
const mergePrompts = (
  content: WorkspaceContent,
  files: PromptFiles,
  folders: Folders,
  tags: NamedItems<WorkspaceTag>,
  context: MergeContext
): ReadonlyArray<PromptMerge> => {
  const existing = new Map(content.prompts.map((prompt) => [prompt.id, prompt]))
  const readState = makeStateReader(content)
  return [
    ...files.prompts.map((file) =>
      mergePrompt(file, existing.get(file.id), folders, tags, readState, context)
    ),
    ...findPromptsWithoutFile(content, files).map((prompt) => archivePrompt(prompt, readState, context))
  ].filter((merge) => merge !== undefined)
}

/** Returns the fragments to write and the resulting changes. */
const mergeFragmentFiles = (content: WorkspaceContent, files: PromptFiles) => {
  const existing = new Map(content.fragments.map((fragment) => [fragment.id, fragment]))
  const changed = files.fragments.filter(
    (file) => !Equal.equals(existing.get(file.id), toFragmentFields(file))
  )
  return {
    fragments: changed.map(toFragmentFields),
    changes: changed.map((file): FragmentChange => {
      const { id, path, name } = file
      const before = existing.get(id)
      return {
        kind: "fragment",
        id,
        path,
        name,
        change: before === undefined ? "added" : "changed",
        before: before === undefined ? null : toFragmentState(before),
        after: toFragmentState(file)
      }
    })
  }
}

/** Returns the changes that remove fragments: those without a file that no prompt without a file contains. */
const removeFragments = (content: WorkspaceContent, files: PromptFiles): ReadonlyArray<FragmentChange> => {
  const needed = new Set([
    ...files.fragments.map(({ id }) => id),
    ...findPromptsWithoutFile(content, files).flatMap(({ fragments }) =>
      fragments.map(({ fragment_id }) => fragment_id)
    )
  ])
  return content.fragments
    .filter(({ id }) => !needed.has(id))
    .map((fragment) => ({
      kind: "fragment",
      id: fragment.id,
      path: null,
      name: fragment.name,
      change: "removed",
      before: toFragmentState(fragment),
      after: null
    }))
}

/**
 * Returns the edit that makes a workspace equal to files that `matchFiles` has matched with it: each prompt and
 * fragment becomes what its file describes, changed content becomes a new version, a prompt without a file is
 * archived, and a fragment without a file is removed unless an archived prompt contains it. The edit names only what
 * differs from the files.
 */
export const applyFiles = (
  content: WorkspaceContent,
  files: PromptFiles,
  context: MergeContext
): FileMerge => {
  const folders = makeFolders(content.folders, context)
  const tags = makeNamedItems(content.tags, (name) => ({
    id: context.newId() as TagId,
    name,
    color: "#808080"
  }))
  const fragments = mergeFragmentFiles(content, files)
  const prompts = mergePrompts(content, files, folders, tags, context)
  const removed = removeFragments(content, files)
  return {
    edit: {
      folders: folders.added,
      tags: tags.added,
      fragments: fragments.fragments,
      removedFragments: removed.map(({ id }) => id),
      prompts: prompts.map(({ edit }) => edit),
      importedFiles: toImportedFiles(files)
    },
    changes: [...fragments.changes, ...prompts.map(({ change }) => change), ...removed]
  }
}
