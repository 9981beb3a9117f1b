import * as Result from "effect/Result"
import { matchFiles } from "../../../../application/formats/files/FileMatch.ts"
import { toImportedFiles, toRecordKey } from "../../../../application/formats/files/FileRecords.ts"
import {
  findFileProblems,
  InvalidFiles,
  type PromptFiles
} from "../../../../application/formats/files/PromptFiles.ts"
import type { ImportedFile } from "../../../../domain/ImportedFile.ts"
import type { WorkspaceContent } from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { assignPaths } from "./PromptPaths.ts"
import { parsePromptFiles, updateTexts } from "./PromptText.ts"

/** The changes that bring the edits of a workspace into a directory of prompts. */
export interface DirectoryUpdate {
  /** The files of the workspace, with their places after the update. */
  readonly files: PromptFiles
  /** The texts to write, by path, in the order of the paths. */
  readonly textsToWrite: ReadonlyMap<string, string>
  /** The paths of the files to remove: their prompts were archived or deleted in the workspace. */
  readonly pathsToRemove: ReadonlyArray<string>
  /** The paths of files that stay as they are: they were added, changed or deleted since the latest import. */
  readonly pending: ReadonlyArray<string>
  /** The paths of files, written or removed, that were changed since the latest import, as their prompts were. */
  readonly conflicts: ReadonlyArray<string>
}

/** Returns the fragments that only archived prompts contain: an import leaves them as they are without a file. */
const findArchivedFragments = ({ prompts }: WorkspaceContent): ReadonlySet<string> => {
  const listFragments = (isArchived: boolean) =>
    prompts
      .filter(({ is_archived }) => is_archived === isArchived)
      .flatMap(({ fragments }) => fragments.map(({ fragment_id }) => fragment_id))
  const live = new Set(listFragments(false))
  return new Set(listFragments(true).filter((id) => !live.has(id)))
}

/** Returns the keys of the prompts that are not archived and of the fragments. */
const listLiveKeys = ({ prompts, fragments }: WorkspaceContent): ReadonlySet<string> =>
  new Set([
    ...fragments.map(({ id }) => toRecordKey({ kind: "fragment", target_id: id })),
    ...prompts
      .filter(({ is_archived }) => !is_archived)
      .map(({ id }) => toRecordKey({ kind: "prompt", target_id: id }))
  ])

/** Finds what each file describes, even if the workspace has deleted it since it was imported from the file. */
const matchWithRecords = (content: WorkspaceContent, files: PromptFiles): PromptFiles => {
  const listTargets = (kind: ImportedFile["kind"]) =>
    content.importedFiles.filter((file) => file.kind === kind).map(({ target_id }) => ({ id: target_id }))
  return matchFiles(
    {
      prompts: [...content.prompts, ...listTargets("prompt")],
      fragments: [...content.fragments, ...listTargets("fragment")]
    },
    files
  )
}

/**
 * Computes how a directory changes so that it contains the edits that were made in a workspace since the latest
 * import. A file whose prompt was not edited stays as it is, byte for byte, even if the file itself was changed
 * since then; other files keep their paths and their formatting. A prompt without a record is written as it is.
 * Fails if an existing file is invalid.
 *
 * @param texts the existing files by path
 */
export const planUpdate = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: ReadonlyMap<string, string>
): Result.Result<DirectoryUpdate, InvalidFiles> =>
  Result.flatMap(parsePromptFiles(workspace, texts), (parsed) => {
    const existing = matchWithRecords(content, parsed)
    const problems = findFileProblems(existing)
    if (problems.length > 0) return Result.fail(InvalidFiles(problems))

    const live = listLiveKeys(content)
    const records = new Map(content.importedFiles.map((file) => [toRecordKey(file), file]))
    const existingRecords = toImportedFiles(existing)
    const isNew = (file: ImportedFile) => !live.has(toRecordKey(file)) && !records.has(toRecordKey(file))
    const added = new Set(existingRecords.filter(isNew).map(({ path }) => path))

    const candidates = [...existingRecords, ...content.importedFiles]
    const candidateKeys = new Set(candidates.map(toRecordKey))
    const archivedFragments = findArchivedFragments(content)
    const fragments = content.fragments.filter(
      ({ id }) =>
        candidateKeys.has(toRecordKey({ kind: "fragment", target_id: id })) || !archivedFragments.has(id)
    )
    const files = assignPaths({ ...content, fragments }, candidates, [...added])

    const isChangedFile = (file: ImportedFile | undefined): boolean => {
      const record = file && records.get(toRecordKey(file))
      return record !== undefined && record.hash !== file?.hash
    }
    const recordsByPath = new Map(existingRecords.map((file) => [file.path, file]))
    const current = new Map(toImportedFiles(files).map((file) => [file.path, file]))
    // Without any file, the directory is new, and no file was deleted.
    const isEdited = (file: ImportedFile | undefined): boolean =>
      texts.size === 0 || file === undefined || records.get(toRecordKey(file))?.hash !== file.hash
    const changedTexts = [...updateTexts(existing, files, texts)].sort(([a], [b]) => (a < b ? -1 : 1))
    const textsToWrite = new Map(changedTexts.filter(([path]) => isEdited(current.get(path))))
    const removedFiles = existingRecords.filter(({ path }) => !added.has(path) && !current.has(path))
    return Result.succeed({
      files,
      textsToWrite,
      pathsToRemove: removedFiles.map(({ path }) => path),
      pending: [...added, ...changedTexts.map(([path]) => path).filter((path) => !textsToWrite.has(path))],
      conflicts: [
        ...[...textsToWrite.keys()].filter((path) => isChangedFile(recordsByPath.get(path))),
        ...removedFiles.filter(isChangedFile).map(({ path }) => path)
      ]
    })
  })
