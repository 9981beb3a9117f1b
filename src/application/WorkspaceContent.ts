import type { FolderId, PromptId, TagId } from "../domain/Prompt.ts"
import type { VersionId } from "../domain/Version.ts"
import type { Archive, ArchivePrompt } from "./Archive.ts"

type Version = ArchivePrompt["versions"][number]

/** What the next version of a prompt follows. */
export interface VersionHistory {
  /** The version whose number is the prompt's `current_version`; null if there is none. */
  readonly current_id: VersionId | null
  /** The version with the highest number; null if the prompt has no version. */
  readonly last: { readonly id: VersionId; readonly version_number: number } | null
}

/** A prompt in its current state; its versions are reduced to the ends of its history. */
export interface CurrentPrompt extends Omit<ArchivePrompt, "versions"> {
  readonly history: VersionHistory
}

/** A workspace's content in its current state, archived prompts included. */
export interface WorkspaceContent extends Pick<Archive, "folders" | "tags" | "fragments"> {
  readonly prompts: ReadonlyArray<CurrentPrompt>
}

/** The columns of a prompt's own row. */
export type PromptRow = Omit<ArchivePrompt, "tags" | "fragments" | "versions">

/** What to write of one prompt; a list that is undefined stays as it is. */
export interface PromptEdit {
  readonly row: PromptRow
  readonly tags: ReadonlyArray<TagId> | undefined
  readonly fragments: ArchivePrompt["fragments"] | undefined
  /** A version to add. */
  readonly version: Version | undefined
}

/** Changes of a workspace's content. Rows that it does not name stay as they are. */
export interface ContentEdit {
  /** Folders to add. */
  readonly folders: ReadonlyArray<{ readonly id: FolderId; readonly name: string }>
  /** Tags to add. */
  readonly tags: Archive["tags"]
  /** Fragments to add or to replace. */
  readonly fragments: Archive["fragments"]
  /** Ids of fragments to remove, together with every prompt's use of them. */
  readonly removedFragments: ReadonlyArray<string>
  /** Prompts to add or to change. */
  readonly prompts: ReadonlyArray<PromptEdit>
}

/** Whether an edit changes nothing. */
export const isEmptyEdit = (edit: ContentEdit): boolean =>
  [edit.folders, edit.tags, edit.fragments, edit.removedFragments, edit.prompts].every(
    (list) => list.length === 0
  )

/** The ends of a list of versions, for a prompt whose current version has this number. */
export const historyOf = (
  current_version: number,
  versions: ReadonlyArray<Pick<Version, "id" | "version_number">>
): VersionHistory => {
  let last: VersionHistory["last"] = null
  let current_id: VersionId | null = null
  for (const { id, version_number } of versions) {
    if (version_number === current_version) current_id = id
    if (last === null || version_number > last.version_number) last = { id, version_number }
  }
  return { current_id, last }
}

/** The current state of an archive's content. */
export const contentOf = ({
  folders,
  tags,
  fragments,
  prompts
}: Pick<Archive, "folders" | "tags" | "fragments" | "prompts">): WorkspaceContent => ({
  folders,
  tags,
  fragments,
  prompts: prompts.map(({ versions, ...prompt }) => ({
    ...prompt,
    history: historyOf(prompt.current_version, versions)
  }))
})

/** Ids of the prompts that an edit writes, in its order. */
export const editedPrompts = ({ prompts }: ContentEdit): ReadonlyArray<PromptId> =>
  prompts.map(({ row }) => row.id)
