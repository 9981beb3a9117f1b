import type { ImportedFile } from "./ImportedFile.ts"
import type { TagId } from "../Prompt.ts"
import type { VersionId } from "../Version.ts"
import type {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  WorkspacePrompt,
  WorkspaceTag
} from "./Workspace.ts"

/** The current version and the last version of a prompt. */
export interface VersionHistory {
  /** The version whose number is the prompt's `current_version`; null if there is none. */
  readonly current_id: VersionId | null
  /** The version with the highest number; null if the prompt has no version. */
  readonly last: { readonly id: VersionId; readonly version_number: number } | null
}

export const emptyHistory: VersionHistory = { current_id: null, last: null }

/** A prompt in its current state. `history` replaces the list of its versions. */
export interface CurrentPrompt extends Omit<WorkspacePrompt, "versions"> {
  readonly history: VersionHistory
}

/** The current state of a workspace's content, archived prompts included. */
export interface WorkspaceContent {
  readonly folders: ReadonlyArray<Folder>
  readonly tags: ReadonlyArray<WorkspaceTag>
  readonly fragments: ReadonlyArray<Fragment>
  readonly prompts: ReadonlyArray<CurrentPrompt>
  /** The files that the latest import or export of a directory recorded. */
  readonly importedFiles: ReadonlyArray<ImportedFile>
}

/** The fields of a prompt that are columns of the table `prompts`. */
export type PromptRow = Omit<WorkspacePrompt, "tags" | "fragments" | "versions">

/** An edit of one prompt. A list that is undefined does not change. */
export interface PromptEdit {
  readonly row: PromptRow
  readonly tags: ReadonlyArray<TagId> | undefined
  readonly fragments: ReadonlyArray<PromptFragment> | undefined
  /** A version to add. */
  readonly version: PromptVersion | undefined
}

/** An edit of a workspace's content. Rows that the edit does not name do not change. */
export interface ContentEdit {
  /** Folders to add. */
  readonly folders: ReadonlyArray<Folder>
  /** Tags to add. */
  readonly tags: ReadonlyArray<WorkspaceTag>
  /** Fragments to add or to replace. */
  readonly fragments: ReadonlyArray<Fragment>
  /** Ids of fragments to remove from the workspace and from every prompt. */
  readonly removedFragments: ReadonlyArray<string>
  /** Prompts to add or to change. */
  readonly prompts: ReadonlyArray<PromptEdit>
  /** Replaces the workspace's list of imported files. If undefined, the list does not change. */
  readonly importedFiles?: ReadonlyArray<ImportedFile> | undefined
}

export const emptyEdit: ContentEdit = {
  folders: [],
  tags: [],
  fragments: [],
  removedFragments: [],
  prompts: []
}

/** Returns true if an edit changes no content; the edit may still replace the list of imported files. */
export const isEmptyEdit = (edit: ContentEdit): boolean =>
  [edit.folders, edit.tags, edit.fragments, edit.removedFragments, edit.prompts].every(
    (list) => list.length === 0
  )
