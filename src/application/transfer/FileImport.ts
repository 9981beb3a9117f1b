import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import type { FolderId, PromptId, TagId } from "../../domain/Prompt.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../../domain/Version.ts"
import type { PromptVersion, WorkspacePrompt } from "../../domain/Workspace.ts"
import {
  type ContentEdit,
  type CurrentPrompt,
  type Problem,
  type WorkspaceContent
} from "../../domain/WorkspaceContent.ts"
import { findMoves, findSlotWarnings, isDifferent, isEditedInWorkspace, type Pair } from "./Comparison.ts"
import { type ContentState, getContent, getName, type PromptState, toFragmentName } from "./PromptFile.ts"
import type { FragmentNames } from "./PromptFileText.ts"

/** The values that a plan cannot compute: the current time, and new ids. */
interface PlanContext {
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

export interface FileImport {
  readonly changes: ReadonlyArray<FileChange>
  /** Warnings about slots and moved files. */
  readonly warnings: ReadonlyArray<Problem>
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

/** Describes how a prompt or fragment was edited in the workspace. */
const describeEdit = (pair: Pair): Problem => {
  const { kind, id, path, name } = toChange(pair)
  const changed = pair.importedHash === undefined ? "created" : "edited"
  const verb = pair.item === undefined ? "deleted" : pair.item.isArchived ? "archived" : changed
  return { path: path ?? `${kind} ${id} (${name})`, message: `was ${verb}` }
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

/** Makes the version with the new content of a prompt, which does not exist yet if `existing` is undefined. */
const makeVersion = (
  content: string,
  existing: CurrentPrompt | undefined,
  { now, newId }: PlanContext
): PromptVersion => ({
  id: newId() as VersionId,
  version_number: (existing?.next_version ?? 1) as VersionNumber,
  content,
  change_summary: "",
  change_source: "import",
  parent_version_id: existing?.parent_version_id ?? null,
  metadata: {},
  created_at: now
})

/** Returns the edit that makes `changes`. The edit names only rows that the changes write. */
const makeEdit = (
  content: WorkspaceContent,
  changes: ReadonlyArray<FileChange>,
  context: PlanContext
): ContentEdit => {
  const { now, newId } = context
  const folders = makeNamedItems(content.folders, (name) => ({ id: newId() as FolderId, name }))
  const tags = makeNamedItems(content.tags, (name) => ({ id: newId() as TagId, name, color: "#808080" }))
  const prompts = new Map<string, CurrentPrompt>(content.prompts.map((prompt) => [prompt.id, prompt]))

  const editPrompt = (id: string, before: ContentState | null, after: PromptState): WorkspacePrompt => {
    const { kind: _, folder, tags: tagNames, fragments, ...fields } = after
    const existing = prompts.get(id)
    const old = before?.kind === "prompt" ? before : undefined
    const versions =
      old?.current_content === after.current_content
        ? []
        : [makeVersion(after.current_content, existing, context)]
    // Several folders may have the same name. A prompt therefore stays in its folder if its file states the name of
    // that folder.
    const keepsFolder = existing !== undefined && old?.folder === folder
    return {
      id: id as PromptId,
      ...fields,
      current_version: versions[0]?.version_number ?? existing?.current_version ?? 0,
      folder_id: keepsFolder ? existing.folder_id : folder === null ? null : folders.findOrAdd(folder),
      is_archived: false,
      created_at: existing?.created_at ?? now,
      updated_at: now,
      tags:
        existing !== undefined && Equal.equals(old?.tags, tagNames)
          ? existing.tags
          : tagNames.map(tags.findOrAdd),
      fragments:
        existing !== undefined && Equal.equals(old?.fragments, fragments)
          ? existing.fragments
          : fragments.map((fragment, index) => ({
              ...fragment,
              id: existing?.fragments[index]?.id ?? newId(),
              position: index + 1
            })),
      versions
    }
  }

  const archivePrompt = ({
    next_version: _,
    parent_version_id: __,
    ...prompt
  }: CurrentPrompt): WorkspacePrompt => ({
    ...prompt,
    is_archived: true,
    updated_at: now,
    versions: []
  })

  const editedPrompts = changes.flatMap(({ kind, id, before, after }) => {
    if (kind === "fragment") return []
    if (after?.kind === "prompt") return [editPrompt(id, before, after)]
    const existing = prompts.get(id)
    return existing === undefined ? [] : [archivePrompt(existing)]
  })
  return {
    folders: folders.added,
    tags: tags.added,
    fragments: changes.flatMap(({ id, after }) =>
      after?.kind === "fragment" ? [{ id, name: after.name, content: after.content }] : []
    ),
    removedFragments: changes.flatMap(({ kind, id, after }) =>
      kind === "fragment" && after === null ? [id] : []
    ),
    prompts: editedPrompts
  }
}

/**
 * Computes the edit that makes a workspace equal to files, and the changes that operators see. Each prompt and fragment
 * becomes what its file describes, and the changed content of a prompt becomes a new version. A prompt without a file
 * is archived. A fragment without a file is removed, unless a prompt without a file contains it.
 *
 * Without `overwrite`, fails if a change would undo an edit that was made in the workspace since the latest import.
 */
export const planImport = (
  content: WorkspaceContent,
  pairs: ReadonlyArray<Pair>,
  overwrite: boolean,
  context: PlanContext
): Result.Result<readonly [ContentEdit, FileImport], ConflictingEdits> => {
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
  const warnings = [...findMoves(selected), ...findSlotWarnings(pairs)]
  const edit = { ...makeEdit(content, changes, context), importedStates }
  return Result.succeed([edit, { changes, warnings, fragmentNames }])
}
