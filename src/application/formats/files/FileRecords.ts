import type { ImportedFile } from "../../../domain/ImportedFile.ts"
import type { Problem } from "../../../domain/Problem.ts"
import type { WorkspaceContent } from "../../../domain/WorkspaceContent.ts"
import { hashState } from "../ContentHash.ts"
import {
  type FileChange,
  type FileIdentity,
  type FragmentState,
  makeStateReader,
  type PromptFiles,
  type PromptState,
  toFragmentState,
  toPromptState
} from "./PromptFiles.ts"

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
export const toImportedFiles = ({ prompts, fragments }: PromptFiles): ReadonlyArray<ImportedFile> => {
  const record = (
    kind: ImportedFile["kind"],
    { id, path, file_id }: FileIdentity & { readonly id: string },
    state: PromptState | FragmentState
  ): ImportedFile => ({ kind, target_id: id, path, file_id, hash: hashState(state) })
  return [
    ...fragments.map((file) => record("fragment", file, toFragmentState(file))),
    ...prompts.map((file) => record("prompt", file, toPromptState(file)))
  ]
}

/** Returns the key of the record of a prompt or fragment: its kind and its id. */
export const toRecordKey = ({ kind, target_id }: Pick<ImportedFile, "kind" | "target_id">): string =>
  `${kind} ${target_id}`

/**
 * Makes a function that finds the record of a file: by the prompt or fragment that the file describes, or by the id in
 * the file, because what the file described before may have been deleted.
 */
const makeRecordFinder = (records: ReadonlyArray<ImportedFile>) => {
  const byTarget = new Map(records.map((file) => [toRecordKey(file), file]))
  const byFileId = new Map(
    records.flatMap((file) =>
      file.file_id === null
        ? []
        : [[toRecordKey({ kind: file.kind, target_id: file.file_id }), file] as const]
    )
  )
  return (kind: ImportedFile["kind"], target_id: string, file_id: string | null): ImportedFile | undefined =>
    byTarget.get(toRecordKey({ kind, target_id })) ??
    (file_id === null ? undefined : byFileId.get(toRecordKey({ kind, target_id: file_id })))
}

/**
 * Returns what was edited, archived or deleted in the workspace since the latest import of files and would be undone
 * by the changes of an import of files; undefined if there is nothing. A prompt or fragment without a record was not
 * imported from a file.
 */
export const findEdits = (
  content: WorkspaceContent,
  files: PromptFiles,
  changes: ReadonlyArray<FileChange>
): ConflictingEdits | undefined => {
  const readState = makeStateReader(content)
  const findRecord = makeRecordFinder(content.importedFiles)
  const prompts = new Map(content.prompts.map((prompt) => [prompt.id as string, prompt]))
  const fragments = new Map(content.fragments.map((fragment) => [fragment.id, fragment]))
  const fileIds = new Map(
    [...files.fragments, ...files.prompts].map(({ path, file_id }) => [path, file_id] as const)
  )

  const findEdit = ({ kind, target_id, hash }: ImportedFile): string | undefined => {
    const prompt = kind === "prompt" ? prompts.get(target_id) : undefined
    const fragment = kind === "fragment" ? fragments.get(target_id) : undefined
    if (prompt?.is_archived === true) return "was archived"
    const state = prompt === undefined ? fragment && toFragmentState(fragment) : readState(prompt)
    if (state === undefined) return "was deleted"
    return hashState(state) === hash ? undefined : "was edited"
  }
  const edits = changes.flatMap(({ kind, id, path, change }): ReadonlyArray<Problem> => {
    const fileId = change === "added" && path !== null ? (fileIds.get(path) ?? null) : null
    const record = findRecord(kind, id, fileId)
    const message = record && findEdit(record)
    return record === undefined || message === undefined ? [] : [{ path: record.path, message }]
  })
  return edits.length === 0 ? undefined : ConflictingEdits(edits)
}
