import * as Schema from "effect/Schema"
import type { VersionId } from "./Version.ts"
import type { Folder, Fragment, WorkspacePrompt, WorkspaceTag } from "./Workspace.ts"

/** The current state of a prompt. Instead of the versions, contains the number and the parent of the next version. */
export interface CurrentPrompt extends Omit<WorkspacePrompt, "versions"> {
  /** One more than the largest of `current_version` and the numbers of the prompt's versions. */
  readonly next_version: number
  /** The id of the current version or, if that version does not exist, of the last version; null without versions. */
  readonly parent_version_id: VersionId | null
}

/** The state that a prompt or fragment had after the latest import of files. */
export const ImportedState = Schema.Struct({
  kind: Schema.Literals(["prompt", "fragment"]),
  id: Schema.String,
  /** The SHA-256 hash of the state: 64 lowercase hexadecimal digits. */
  hash: Schema.String
})
export type ImportedState = typeof ImportedState.Type

/** The current state of a workspace's content, archived prompts included. */
export interface WorkspaceContent {
  readonly folders: ReadonlyArray<Folder>
  readonly tags: ReadonlyArray<WorkspaceTag>
  readonly fragments: ReadonlyArray<Fragment>
  readonly prompts: ReadonlyArray<CurrentPrompt>
  /** The states that the latest import of files recorded. */
  readonly importedStates: ReadonlyArray<ImportedState>
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
  /** Prompts to add or to change. `versions` has only the versions to add. */
  readonly prompts: ReadonlyArray<WorkspacePrompt>
  /** Replaces the workspace's recorded states. If undefined, the recorded states do not change. */
  readonly importedStates?: ReadonlyArray<ImportedState> | undefined
}

/** Returns true if an edit changes no content; the edit can still replace the recorded states. */
export const isEmptyEdit = ({ importedStates: _, ...changes }: ContentEdit): boolean =>
  Object.values(changes).flat().length === 0

/** A problem. `path` locates the value with the problem, such as `prompts[3].versions[0].created_at`, or the file. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** Maximum number of problems that an error contains, and of problems or warnings that a command prints. */
export const maxProblems = 100

/** A change failed, because its content is invalid for the workspace. Nothing has changed. */
export interface InvalidContent {
  readonly _tag: "InvalidContent"
  /** The first `maxProblems` problems. */
  readonly problems: ReadonlyArray<Problem>
  /** The number of all problems. */
  readonly count: number
}
/** Makes the error from all problems. */
export const InvalidContent = (problems: ReadonlyArray<Problem>): InvalidContent => ({
  _tag: "InvalidContent",
  problems: problems.slice(0, maxProblems),
  count: problems.length
})

/** Maximum size of an archive's file in bytes. An import holds the whole text in memory. */
export const maxArchiveBytes = 256 * 1024 * 1024

/** The archive of a workspace is or would be larger than `maxArchiveBytes`. */
export const ArchiveTooLarge = { _tag: "ArchiveTooLarge" } as const
export type ArchiveTooLarge = typeof ArchiveTooLarge
