import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import type { FolderId, PromptId, TagId } from "../../domain/Prompt.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../../domain/Version.ts"
import type { Fragment, PromptVersion } from "../../domain/Workspace.ts"
import {
  type ContentEdit,
  type CurrentPrompt,
  emptyHistory,
  type Problem,
  type PromptEdit,
  type WorkspaceContent
} from "../../domain/WorkspaceContent.ts"
import { compare, isDifferent, isEditedInWorkspace, type Pair } from "./Comparison.ts"
import { type ContentState, getContent, getName, type PromptState } from "./ContentState.ts"
import { requireDistinctNames } from "./DistinctNames.ts"
import { type ContentFile, type FragmentNames, InvalidFiles } from "./PromptFile.ts"
import { toFragmentName } from "./PromptPaths.ts"

/** The values that a plan cannot compute: the current time, and new ids. */
export interface PlanContext {
  readonly now: Timestamp
  readonly newId: () => string
}

/** A change that an import of files makes. `path` is null if no file describes the prompt or fragment. */
export interface FileChange {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly path: string | null
  readonly name: string
  /**
   * `new version` means that the content of an existing prompt changes. Any other difference between a file and an
   * existing prompt or fragment is `changed`.
   */
  readonly change: "added" | "new version" | "changed" | "archived" | "removed"
  /**
   * `before` is null for a new prompt or fragment; `after` is null if the prompt is archived or the fragment is
   * removed.
   */
  readonly before: ContentState | null
  readonly after: ContentState | null
}

/** The changes that an import of files makes, and the names of all fragments for showing the changes. */
export interface FileImport {
  readonly changes: ReadonlyArray<FileChange>
  /** Maps the id of each fragment to its name in front matter or, without a file, to its name in the workspace. */
  readonly fragmentNames: FragmentNames
}

/**
 * An import of files failed, because it would undo edits that were made in the workspace since the latest import.
 * Nothing has changed. The path of an edit is the path of the file, or the kind, id and name if there is no file.
 */
export interface ConflictingEdits {
  readonly _tag: "ConflictingEdits"
  readonly edits: ReadonlyArray<Problem>
}
const ConflictingEdits = (edits: ReadonlyArray<Problem>): ConflictingEdits => ({
  _tag: "ConflictingEdits",
  edits
})

/** Returns the change that gives a prompt or a fragment the state of its file. */
const toChange = ({ kind, id, item, file }: Pair): FileChange => {
  const [before, after] = [item?.state ?? null, file?.state ?? null]
  const toKindOfChange = (): FileChange["change"] => {
    if (after === null) return kind === "prompt" ? "archived" : "removed"
    if (before === null) return "added"
    return kind === "prompt" && getContent(before) !== getContent(after) ? "new version" : "changed"
  }
  const state = after ?? before
  const name = state === null ? "" : getName(state)
  return { kind, id, path: file?.path ?? null, name, change: toKindOfChange(), before, after }
}

/**
 * Returns the pairs that an import changes. A fragment without a file stays unchanged if a prompt without a file
 * contains it.
 */
const selectPairs = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Pair> => {
  const needed = new Set<string>(
    pairs.flatMap(({ item, file }) =>
      file === undefined && item?.state.kind === "prompt"
        ? item.state.fragments.map(({ fragment_id }) => fragment_id)
        : []
    )
  )
  return pairs.filter(
    (pair) => isDifferent(pair) && (pair.kind === "prompt" || pair.file !== undefined || !needed.has(pair.id))
  )
}

/**
 * Compares a workspace with files like `compare`, and also fails if a file gives a prompt the name of another prompt.
 */
export const pairFiles = (
  content: WorkspaceContent,
  files: ReadonlyArray<ContentFile>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> =>
  Result.flatMap(compare(content, files), requireDistinctNames)

/** Describes how a prompt or fragment was edited in the workspace. */
const describeEdit = (pair: Pair): Problem => {
  const { kind, id, path, name } = toChange(pair)
  const changed = pair.importedHash === undefined ? "created" : "edited"
  const verb = pair.item === undefined ? "deleted" : pair.item.isArchived ? "archived" : changed
  return { path: path ?? `${kind} ${id} (${name})`, message: `was ${verb}` }
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
  { now, newId }: PlanContext
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
interface PromptEditContext extends PlanContext {
  readonly findFolder: (name: string) => FolderId
  readonly findTag: (name: string) => TagId
}

const archivePrompt = (
  { tags: _, fragments: __, history: ___, ...row }: CurrentPrompt,
  { now }: PlanContext
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

/** Returns the edit that makes `changes`. The edit names only rows that the changes write. */
const makeEdit = (
  content: WorkspaceContent,
  changes: ReadonlyArray<FileChange>,
  context: PlanContext
): ContentEdit => {
  const { newId } = context
  const folders = makeNamedItems(content.folders, (name) => ({ id: newId() as FolderId, name }))
  const tags = makeNamedItems(content.tags, (name) => ({ id: newId() as TagId, name, color: "#808080" }))
  const editContext = { ...context, findFolder: folders.findOrAdd, findTag: tags.findOrAdd }
  const existing = new Map<string, CurrentPrompt>(content.prompts.map((prompt) => [prompt.id, prompt]))
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
  return { folders: folders.added, tags: tags.added, fragments, removedFragments, prompts }
}

/**
 * Computes the edit that makes a workspace equal to files, and the changes that operators see. Each prompt and fragment
 * becomes what its file describes, and the changed content of a prompt becomes a new version. A prompt without a file
 * is archived. A fragment without a file is removed, unless a prompt without a file contains it.
 *
 * Fails if two files describe the same prompt or fragment, or would give two prompts the same name. Without
 * `overwrite`, also fails if a change would undo an edit that was made in the workspace since the latest import.
 */
export const planImport = (
  content: WorkspaceContent,
  files: ReadonlyArray<ContentFile>,
  overwrite: boolean,
  context: PlanContext
): Result.Result<readonly [ContentEdit, FileImport], ConflictingEdits | InvalidFiles> =>
  Result.flatMap(pairFiles(content, files), (pairs) => {
    const selected = selectPairs(pairs)
    const edits = selected.filter(isEditedInWorkspace).map(describeEdit)
    if (edits.length > 0 && !overwrite) return Result.fail(ConflictingEdits(edits))
    const changes = selected.map(toChange)
    const importedStates = pairs.flatMap(({ kind, id, fileHash: hash }) =>
      hash === undefined ? [] : [{ kind, id, hash }]
    )
    const fragmentNames = new Map(
      pairs.flatMap(({ id, item, file }) => {
        if (file === undefined) return item?.state.kind === "fragment" ? [[id, item.state.name]] : []
        return file.state.kind === "fragment" ? [[id, toFragmentName(file.path)]] : []
      })
    )
    const edit = makeEdit(content, changes, context)
    return Result.succeed([
      { ...edit, importedStates },
      { changes, fragmentNames }
    ])
  })
