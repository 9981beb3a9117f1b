import * as Result from "effect/Result"
import {
  type ContentFile,
  InvalidFiles,
  readItems,
  toFileKey,
  toKey
} from "../../../../application/formats/files/ContentFile.ts"
import { findDuplicates, matchFiles } from "../../../../application/formats/files/FileMatch.ts"
import { indexRecords, toImportedFiles } from "../../../../application/formats/files/FileRecords.ts"
import { hashState } from "../../../../application/formats/ContentHash.ts"
import type { WorkspaceContent } from "../../../../domain/workspace/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { assignPaths } from "./PromptPaths.ts"
import { makeRenderer, parsePromptFiles } from "./PromptText.ts"

/** The changes that bring the edits of a workspace into a directory of prompts. All paths are in order. */
export interface DirectoryUpdate {
  /** The files of the workspace, with their places after the update. */
  readonly files: ReadonlyArray<ContentFile>
  /** The texts to write, by path. */
  readonly textsToWrite: ReadonlyMap<string, string>
  /** The paths of the files to remove: their prompts were archived or deleted in the workspace. */
  readonly pathsToRemove: ReadonlyArray<string>
  /** The paths of files that stay as they are: they were added, changed or deleted since the latest import. */
  readonly pending: ReadonlyArray<string>
  /** The paths of written or removed files that were changed, like their prompts, since the latest import. */
  readonly conflicts: ReadonlyArray<string>
}

/** Returns the ids of fragments that only archived prompts contain: an import keeps such a fragment without a file. */
const findArchivedFragments = ({ prompts }: WorkspaceContent): ReadonlySet<string> => {
  const listFragments = (isArchived: boolean) =>
    prompts
      .filter(({ is_archived }) => is_archived === isArchived)
      .flatMap(({ fragments }) => fragments.map(({ fragment_id }) => fragment_id))
  const live = new Set(listFragments(false))
  return new Set(listFragments(true).filter((id) => !live.has(id)))
}

/**
 * Computes how a directory changes so that it contains the edits that were made in a workspace since the latest import.
 * A file whose prompt was not edited stays as it is, byte for byte, even if the file itself was changed since then;
 * other files keep their paths and their formatting. A prompt without a record is written as it is. Fails if an
 * existing file is invalid.
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
    // A file describes the prompt that it was imported as, even if the workspace has deleted the prompt since.
    const existing = matchFiles(new Set([...items.keys(), ...records.keys()]), parsed)
    const problems = findDuplicates(existing)
    if (problems.length > 0) return Result.fail(InvalidFiles(problems))

    const existingRecords = indexRecords(toImportedFiles(existing))
    const existingFiles = new Map(existing.map((file) => [toFileKey(file), file]))
    const archivedFragments = findArchivedFragments(content)
    const fragments = content.fragments.filter(({ id }) => {
      const key = toKey("fragment", id)
      return !archivedFragments.has(id) || existingFiles.has(key) || records.has(key)
    })
    const isNew = (key: string) => items.get(key)?.isArchived !== false && !records.has(key)
    const newPaths = existing.filter((file) => isNew(toFileKey(file))).map(({ path }) => path)
    const places = [...existingRecords.values(), ...content.importedFiles]
    const files = assignPaths({ ...content, fragments }, places, newPaths)

    const render = makeRenderer(files)
    const written = new Map<string, string>()
    const removed = new Set<string>()
    const pending = new Set<string>()
    const conflicts = new Set<string>()
    const targets = new Map(files.map((file) => [toFileKey(file), file]))
    for (const key of new Set([...existingFiles.keys(), ...targets.keys()])) {
      const [file, target] = [existingFiles.get(key), targets.get(key)]
      const path = target?.path ?? file?.path ?? ""
      const fileHash = existingRecords.get(key)?.hash
      const targetHash = target && hashState(target.state)
      const importedHash = records.get(key)?.hash
      if (fileHash === targetHash) continue
      // Without any file, the directory is new, and no file was deleted.
      if (targetHash === importedHash && texts.size > 0) {
        pending.add(path)
        continue
      }
      if (target === undefined) removed.add(path)
      else written.set(path, render(target, file && { file, text: texts.get(file.path) ?? "" }))
      if (fileHash !== undefined && importedHash !== undefined && fileHash !== importedHash)
        conflicts.add(path)
    }
    return Result.succeed({
      files,
      textsToWrite: new Map([...written].sort(([a], [b]) => (a < b ? -1 : 1))),
      // The path of a removed file may be that of a new prompt.
      pathsToRemove: [...removed].filter((path) => !written.has(path)).sort(),
      pending: [...pending].sort(),
      conflicts: [...conflicts].sort()
    })
  })
