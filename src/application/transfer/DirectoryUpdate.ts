import * as Result from "effect/Result"
import { type ContentFile, InvalidFiles, readItems, toFileKey, toKey } from "./ContentFile.ts"
import { findDuplicates, matchFiles } from "./FileMatch.ts"
import { indexRecords, toImportedFiles } from "./FileRecords.ts"
import { hashState } from "./ContentHash.ts"
import type { ImportedFile } from "../../domain/workspace/ImportedFile.ts"
import type { WorkspaceContent } from "../../domain/workspace/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { assignPaths } from "./PromptPaths.ts"
import { makeRenderer, parsePromptFiles } from "./PromptText.ts"

/**
 * The changes that bring the edits of a workspace into a directory of prompts. The texts and the lists of paths are
 * sorted by path.
 */
export interface DirectoryUpdate {
  /** The files of the workspace. Each has its path and its `file_id` after the update. */
  readonly files: ReadonlyArray<ContentFile>
  readonly textsToWrite: ReadonlyMap<string, string>
  /** The paths of the files to remove: their prompts were archived or deleted, or their fragments were deleted. */
  readonly pathsToRemove: ReadonlyArray<string>
  /**
   * The paths at which the update changes nothing, although files were added, changed or deleted since the latest
   * import.
   */
  readonly pending: ReadonlyArray<string>
  /**
   * The paths to write or remove at which both the file and its prompt or fragment were changed since the latest
   * import.
   */
  readonly conflicts: ReadonlyArray<string>
}

/**
 * Returns the fragments that get a file. Omits a fragment that is not in `records` and that only archived prompts use.
 */
const selectFragments = (
  { fragments, prompts }: WorkspaceContent,
  records: ReadonlyMap<string, ImportedFile>
): WorkspaceContent["fragments"] => {
  const listFragments = (isArchived: boolean) =>
    new Set(
      prompts
        .filter(({ is_archived }) => is_archived === isArchived)
        .flatMap(({ fragments }) => fragments.map(({ fragment_id }) => fragment_id))
    )
  const [live, archived] = [listFragments(false), listFragments(true)]
  return fragments.filter(({ id }) => live.has(id) || !archived.has(id) || records.has(toKey("fragment", id)))
}

/**
 * Computes how to update a directory with the edits that were made in its workspace since the latest import. A file
 * whose prompt or fragment was not edited stays as it is, byte for byte, even if the file was changed since the latest
 * import. An existing file that is written keeps its path and, if possible, its formatting. A prompt or fragment
 * without a record of an import counts as edited. Fails if an existing file is invalid, or if two existing files
 * describe the same prompt or fragment.
 *
 * @param texts the existing files by path
 */
export const planUpdate = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: ReadonlyMap<string, string>
): Result.Result<DirectoryUpdate, InvalidFiles> =>
  Result.flatMap(parsePromptFiles(workspace, texts), (parsed) => {
    const records = indexRecords(content.importedFiles)
    const items = readItems(content)
    // Also match recorded ids: a file still belongs to the prompt of its latest import after this prompt was deleted.
    const existing = matchFiles(new Set([...items.keys(), ...records.keys()]), parsed)
    const problems = findDuplicates(existing)
    if (problems.length > 0) return Result.fail(InvalidFiles(problems))

    const existingFiles = new Map(existing.map((file) => [toFileKey(file), file]))
    const isLive = ({ kind, target_id }: ImportedFile) =>
      items.get(toKey(kind, target_id))?.isArchived === false
    const places = [...toImportedFiles(existing), ...content.importedFiles.filter(isLive)]
    const fragments = selectFragments(content, indexRecords(places))
    const files = assignPaths({ ...content, fragments }, places)

    const render = makeRenderer(files)
    const written = new Map<string, string>()
    const removed = new Set<string>()
    const pending = new Set<string>()
    const conflicts = new Set<string>()
    const targets = new Map(files.map((file) => [toFileKey(file), file]))
    for (const key of new Set([...existingFiles.keys(), ...targets.keys()])) {
      const [file, target] = [existingFiles.get(key), targets.get(key)]
      const path = target?.path ?? file?.path ?? ""
      const fileHash = file && hashState(file.state)
      const targetHash = target && hashState(target.state)
      const importedHash = records.get(key)?.hash
      if (fileHash === targetHash) continue
      // A directory without files is new. Its missing files do not count as deleted.
      const isEdited = targetHash !== importedHash || texts.size === 0
      if (!isEdited) pending.add(path)
      else if (target === undefined) removed.add(path)
      else written.set(path, render(target, file && { file, text: texts.get(file.path) ?? "" }))
      const isFileChanged = fileHash !== undefined && fileHash !== importedHash
      if (isEdited && isFileChanged && importedHash !== undefined) conflicts.add(path)
    }
    return Result.succeed({
      files,
      textsToWrite: new Map([...written].sort(([a], [b]) => (a < b ? -1 : 1))),
      pathsToRemove: [...removed].sort(),
      pending: [...pending].sort(),
      conflicts: [...conflicts].sort()
    })
  })
