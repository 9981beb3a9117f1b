import type { ImportedFile } from "../../../domain/workspace/ImportedFile.ts"
import type { Problem } from "../../../domain/workspace/Problem.ts"
import type { WorkspaceContent } from "../../../domain/workspace/WorkspaceContent.ts"
import { hashState } from "../ContentHash.ts"
import { type ContentFile, type ContentItem, type FileChange, toFileKey, toKey } from "./ContentFile.ts"

/** Edits made in the workspace that an import of files would undo; nothing has changed. The path of an edit is that of its file. */
export interface ConflictingEdits {
  readonly _tag: "ConflictingEdits"
  readonly edits: ReadonlyArray<Problem>
}
const ConflictingEdits = (edits: ReadonlyArray<Problem>): ConflictingEdits => ({
  _tag: "ConflictingEdits",
  edits
})

/** Returns the records of files that were matched with a workspace. */
export const toImportedFiles = (files: ReadonlyArray<ContentFile>): ReadonlyArray<ImportedFile> =>
  files.map(({ id, path, file_id, state }) => ({
    kind: state.kind,
    target_id: id,
    path,
    file_id,
    hash: hashState(state)
  }))

/** Returns the records of an import by the keys of the prompts and fragments. */
export const indexRecords = (records: ReadonlyArray<ImportedFile>): ReadonlyMap<string, ImportedFile> =>
  new Map(records.map((record) => [toKey(record.kind, record.target_id), record]))

/** Returns what happened to a prompt or a fragment since the import that recorded it; undefined if nothing happened. */
const describeEdit = ({ hash }: ImportedFile, item: ContentItem | undefined): string | undefined => {
  if (item === undefined) return "was deleted"
  if (item.isArchived) return "was archived"
  return hashState(item.state) === hash ? undefined : "was edited"
}

/**
 * Returns what was edited, archived or deleted in the workspace since the latest import of files and would be undone
 * by the changes of an import of files; undefined if there is nothing. A prompt or fragment without a record was not
 * imported from a file.
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
    // The prompt that had the id in the file may have been deleted, so that the file describes a new prompt.
    const keys = [toKey(kind, id), toKey(kind, fileIds.get(toKey(kind, id)) ?? id)]
    const key = keys.find((key) => records.has(key)) ?? ""
    const record = records.get(key)
    const message = record && describeEdit(record, items.get(key))
    return record === undefined || message === undefined ? [] : [{ path: record.path, message }]
  })
  return edits.length === 0 ? undefined : ConflictingEdits(edits)
}
