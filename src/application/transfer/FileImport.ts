import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { FolderId, PromptId, TagId } from "../../domain/Prompt.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../../domain/Version.ts"
import type { Folder, PromptVersion, WorkspacePrompt, WorkspaceTag } from "../../domain/Workspace.ts"
import {
  type ContentEdit,
  type CurrentPrompt,
  type ImportedState,
  type InvalidContent,
  type Problem,
  type WorkspaceContent
} from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { type BreakingChange, findBreakingChanges } from "./BreakingChanges.ts"
import { type ContentState, getContent, getName, type PromptState } from "./ContentState.ts"
import { findSlotWarnings, isDifferent, type Pair, pairForImport } from "./Pairing.ts"
import { InvalidFiles, type PromptFile, toFragmentName } from "./PromptFile.ts"

/** A change that an import of files makes. `path` is null if no file describes the prompt or fragment. */
export interface FileChange {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly path: string | null
  readonly name: string
  /** `new version` is a change to the content of an existing prompt; `changed` is any other difference. */
  readonly change: "added" | "new version" | "changed" | "archived" | "removed"
  /** The state in the workspace; null for a new prompt or fragment. */
  readonly before: ContentState | null
  /** The state of the file; null if the prompt is archived or the fragment is removed. */
  readonly after: ContentState | null
}

export interface FileImport {
  readonly changes: ReadonlyArray<FileChange>
  /** Warnings about slots and moved files. */
  readonly warnings: ReadonlyArray<Problem>
  /** Maps the id of each fragment to its name in front matter or, without a file, to its name in the workspace. */
  readonly fragmentNames: ReadonlyMap<string, string>
  /** The breaking changes; empty if the import is not a dry run. */
  readonly breakingChanges: ReadonlyArray<BreakingChange>
}

/**
 * An import of files failed, because it would undo edits that were made in the workspace since the latest import.
 * Nothing has changed. The path of an edit is the path of the file, or the kind, id and name if there is no file.
 */
export class ConflictingEdits extends Data.TaggedError("ConflictingEdits")<{
  readonly edits: ReadonlyArray<Problem>
}> {}

/** Returns a warning for each new file that has no id, and has the content or name of an item that lost its file. */
const findMoves = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Problem> => {
  const toTraits = (state: ContentState) => [
    `${state.kind} name ${getName(state)}`,
    `${state.kind} content ${getContent(state)}`
  ]
  const lost = new Map(
    pairs.flatMap(({ item, file }) =>
      file === undefined && item?.isArchived === false
        ? toTraits(item.state).map((trait) => [trait, item] as const)
        : []
    )
  )
  return pairs.flatMap(({ kind, item, file }) => {
    if (file === undefined || file.file_id !== null || item !== undefined) return []
    const [old] = toTraits(file.state).flatMap((trait) => lost.get(trait) ?? [])
    if (old === undefined) return []
    const message = `looks like a move of ${kind} ${old.id} (${getName(old.state)}): to keep its id and its history, add the earlier path of the file to the front matter, such as "id: ${kind}s/old/path.md"`
    return [{ path: file.path, message }]
  })
}

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
 * Returns the pairs that an import changes. Leaves out a fragment without a file if a prompt without a file contains the
 * fragment.
 */
const listChangedPairs = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Pair> => {
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
 * Returns the states to record after an import that changes the pairs of `selected`. If no prompt or fragment is left,
 * returns a state that no prompt has. A workspace without recorded states would count as a workspace without an import.
 */
const listStates = (
  workspace: WorkspaceId,
  pairs: ReadonlyArray<Pair>,
  selected: ReadonlyArray<Pair>
): ReadonlyArray<ImportedState> => {
  const changed = new Set(selected)
  const states = pairs.flatMap((pair) => {
    const { kind, id, fileHash, workspaceHash } = pair
    const hash = changed.has(pair) ? fileHash : workspaceHash
    return hash === undefined ? [] : [{ kind, id, hash }]
  })
  return states.length > 0 ? states : [{ kind: "prompt", id: workspace, hash: "0".repeat(64) }]
}

/** The inputs of a plan other than the workspace and the files. */
interface PlanOptions {
  readonly now: Timestamp
  readonly newId: () => string
  readonly overwrite?: boolean
  readonly dryRun?: boolean
}

/**
 * Returns a function that finds the id of a folder or tag by its name, because files refer to folders and tags by name.
 * If several items have the name, uses the first item. If no item has the name, adds a new item to `added`.
 */
const makeFinder = <A extends { readonly id: string; readonly name: string }>(
  items: ReadonlyArray<A>,
  added: Array<A>,
  create: (name: string) => A
) => {
  const byName = new Map(items.toReversed().map((item) => [item.name, item]))
  return (name: string): A["id"] => {
    const item = byName.get(name) ?? create(name)
    if (!byName.has(name)) added.push(item)
    byName.set(name, item)
    return item.id
  }
}

/** Returns the edit that makes `changes`. The edit names only rows that the changes write. */
const makeEdit = (
  content: WorkspaceContent,
  changes: ReadonlyArray<FileChange>,
  { now, newId }: PlanOptions
): ContentEdit => {
  const newFolders: Array<Folder> = []
  const newTags: Array<WorkspaceTag> = []
  const findFolder = makeFinder(content.folders, newFolders, (name) => ({ id: newId() as FolderId, name }))
  const findTag = makeFinder(content.tags, newTags, (name) => ({
    id: newId() as TagId,
    name,
    color: "#808080"
  }))
  const prompts = new Map<string, CurrentPrompt>(content.prompts.map((prompt) => [prompt.id, prompt]))

  const makeVersion = (content: string, existing: CurrentPrompt | undefined): PromptVersion => ({
    id: newId() as VersionId,
    version_number: (existing?.next_version ?? 1) as VersionNumber,
    content,
    change_summary: "",
    change_source: "import",
    parent_version_id: existing?.parent_version_id ?? null,
    metadata: {},
    created_at: now
  })

  const editPrompt = (id: string, before: ContentState | null, after: PromptState): WorkspacePrompt => {
    const { kind: _, folder, tags, fragments, ...fields } = after
    const existing = prompts.get(id)
    const old = before?.kind === "prompt" ? before : undefined
    const hasSameContent = old?.current_content === after.current_content
    const versions = hasSameContent ? [] : [makeVersion(after.current_content, existing)]
    // Several folders can have the same name, so a prompt keeps its folder if the prompt's file names that folder.
    const keepsFolder = existing !== undefined && old?.folder === folder
    return {
      id: id as PromptId,
      ...fields,
      current_version: versions[0]?.version_number ?? existing?.current_version ?? 0,
      folder_id: keepsFolder ? existing.folder_id : folder === null ? null : findFolder(folder),
      is_archived: false,
      created_at: existing?.created_at ?? now,
      updated_at: now,
      tags: tags.map(findTag),
      fragments: fragments.map((fragment, index) => ({
        ...fragment,
        id: existing?.fragments[index]?.id ?? newId(),
        position: index + 1
      })),
      versions
    }
  }

  const editedPrompts = changes.flatMap(({ kind, id, before, after }): ReadonlyArray<WorkspacePrompt> => {
    if (after?.kind === "prompt") return [editPrompt(id, before, after)]
    const existing = prompts.get(id)
    if (kind === "fragment" || existing === undefined) return []
    const { next_version: _, parent_version_id: __, ...prompt } = existing
    return [{ ...prompt, is_archived: true, updated_at: now, versions: [] }]
  })
  return {
    folders: newFolders,
    tags: newTags,
    fragments: changes.flatMap(({ id, after }) =>
      after?.kind === "fragment" ? [{ id, name: after.name, content: after.content }] : []
    ),
    removedFragments: changes.flatMap(({ change, id }) => (change === "removed" ? [id] : [])),
    prompts: editedPrompts
  }
}

/** An edit, and the import that operators see. */
export type ImportPlan = readonly [ContentEdit, FileImport]

/**
 * Plans the import of files into a workspace: the edit that makes the workspace equal to the files, and the changes that
 * operators see. Each prompt and fragment gets the state that its file describes. The changed content of a prompt
 * becomes a new version. A prompt without a file is archived. A fragment without a file is removed, unless a prompt
 * without a file contains the fragment.
 *
 * Without `overwrite`, the plan fails if it would undo an edit that was made in the workspace since the latest import.
 * The first import never fails for this reason, because there is no earlier import to compare with.
 *
 * @param files the result of `parseFiles`
 */
export const planImport = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  files: ReadonlyArray<PromptFile>,
  options: PlanOptions
): Result.Result<ImportPlan, InvalidFiles | ConflictingEdits> =>
  Result.gen(function* () {
    const pairs = yield* pairForImport(workspace, content, files)
    const selected = listChangedPairs(pairs)
    const isFirstImport = content.importedStates.length === 0
    const edited = selected.filter(({ workspaceHash, importedHash }) => workspaceHash !== importedHash)
    if (options.overwrite !== true && !isFirstImport && edited.length > 0)
      return yield* Result.fail(new ConflictingEdits({ edits: edited.map(describeEdit) }))
    const changes = selected.map(toChange)
    const fragmentNames = new Map(
      pairs.flatMap(({ id, item, file }) => {
        const state = file?.state ?? item?.state
        if (state?.kind !== "fragment") return []
        return [[id, file === undefined ? state.name : toFragmentName(file.path)]]
      })
    )
    const warnings = [...findMoves(selected), ...findSlotWarnings(pairs)]
    const breakingChanges = options.dryRun === true ? findBreakingChanges(pairs) : []
    const importedStates = listStates(workspace, pairs, selected)
    const edit = { ...makeEdit(content, changes, options), importedStates }
    return [edit, { changes, warnings, fragmentNames, breakingChanges }] as const
  })

/** Converts problems of prompts and fragments in a plan's edit to problems of the files that describe the items. */
export const locateInFiles = (
  { problems, count }: InvalidContent,
  plan: ImportPlan | undefined
): InvalidFiles => {
  const locate = (problem: Problem): Problem => {
    const [, kind, index, field] = /^(prompt|fragment)s\[(\d+)\]\.?(.*)$/.exec(problem.path) ?? []
    const item = (kind === "prompt" ? plan?.[0].prompts : plan?.[0].fragments)?.[Number(index)]
    const path = plan?.[1].changes.find((change) => change.kind === kind && change.id === item?.id)?.path
    return typeof path === "string" ? { path, message: `${field} ${problem.message}` } : problem
  }
  return new InvalidFiles(problems.map(locate), count)
}
