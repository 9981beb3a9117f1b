import type { ImportedFile } from "../../domain/workspace/ImportedFile.ts"
import type { Problem } from "../../domain/workspace/Problem.ts"
import type { WorkspaceContent } from "../../domain/workspace/WorkspaceContent.ts"
import { hashState } from "./ContentHash.ts"
import { type ContentFile, type ContentItem, type FileChange, toFileKey, toKey } from "./ContentFile.ts"

/**
 * An import of files failed, because it would undo edits that were made in the workspace. Nothing has changed. The path
 * of an edit is the path that the latest import recorded for the file of the edited prompt or fragment.
 */
export interface ConflictingEdits {
  readonly _tag: "ConflictingEdits"
  readonly edits: ReadonlyArray<Problem>
}

/** Returns the records of files that `matchFiles` has matched with a workspace. */
export const toImportedFiles = (files: ReadonlyArray<ContentFile>): ReadonlyArray<ImportedFile> =>
  files.map(({ id, path, file_id, state }) => ({
    kind: state.kind,
    target_id: id,
    path,
    file_id,
    hash: hashState(state)
  }))

/** Indexes the records of an import by the keys of their prompts and fragments. */
export const indexRecords = (records: ReadonlyArray<ImportedFile>): ReadonlyMap<string, ImportedFile> =>
  new Map(records.map((record) => [toKey(record.kind, record.target_id), record]))

/**
 * Describes how a prompt or fragment has changed in the workspace since the recorded import. Returns undefined if it
 * has not changed.
 */
const describeEdit = ({ hash }: ImportedFile, item: ContentItem | undefined): string | undefined => {
  if (item === undefined) return "was deleted"
  if (item.isArchived) return "was archived"
  return hashState(item.state) === hash ? undefined : "was edited"
}

/**
 * Finds the edits that an import of files with these `changes` would undo: each prompt or fragment that the import
 * would change, and that was edited, archived or deleted in the workspace since the latest import. Returns undefined if
 * there are none. Ignores a prompt or fragment without a record, because there is no recorded state to compare with.
 */
export const findEdits = (
  { importedFiles }: WorkspaceContent,
  items: ReadonlyMap<string, ContentItem>,
  files: ReadonlyArray<ContentFile>,
  changes: ReadonlyArray<FileChange>
): ConflictingEdits | undefined => {
  const records = indexRecords(importedFiles)
  const fileIds = new Map(files.map((file) => [toFileKey(file), file.file_id]))
  const edits = changes.flatMap(({ kind, id }): ReadonlyArray<Problem> => {
    // If the prompt with the id in the file was deleted, the file describes a new prompt with another id.
    const keys = [toKey(kind, id), toKey(kind, fileIds.get(toKey(kind, id)) ?? id)]
    const key = keys.find((key) => records.has(key)) ?? ""
    const record = records.get(key)
    const message = record && describeEdit(record, items.get(key))
    return record === undefined || message === undefined ? [] : [{ path: record.path, message }]
  })
  return edits.length === 0 ? undefined : { _tag: "ConflictingEdits", edits }
}
