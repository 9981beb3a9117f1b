import * as Result from "effect/Result"
import type { WorkspaceContent } from "../../domain/WorkspaceContent.ts"
import { type ContentItem, type ContentState, hashState, readItems, toKey } from "./ContentState.ts"
import { type ContentFile, InvalidFiles } from "./PromptFile.ts"

/**
 * A prompt or fragment in the workspace and in a directory of files. The hashes are those of its states in the
 * workspace, in the directory, and after the latest import. A hash is undefined if there is no such state. An archived
 * prompt has an `item`, but no `workspaceHash`. `isImported` is true if any import has recorded its states.
 */
export interface Pair {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly item: ContentItem | undefined
  readonly file: ContentFile | undefined
  readonly workspaceHash: string | undefined
  readonly fileHash: string | undefined
  readonly importedHash: string | undefined
  readonly isImported: boolean
}

/** Returns true if the prompt or fragment has different states in the workspace and in the directory. */
export const isDifferent = ({ workspaceHash, fileHash }: Pair): boolean => workspaceHash !== fileHash

/**
 * Returns true if the prompt or fragment was created, edited, archived or deleted in the workspace since the latest
 * import. Before the first import, there is nothing to compare with, so the result is false.
 */
export const isEditedInWorkspace = ({ isImported, workspaceHash, importedHash }: Pair): boolean =>
  isImported && workspaceHash !== importedHash

/** Returns true if the file was added or edited since the latest import. */
export const isEditedInDirectory = ({ fileHash, importedHash }: Pair): boolean =>
  fileHash !== undefined && fileHash !== importedHash

const toFileKey = ({ id, state }: Pick<ContentFile, "id" | "state">): string =>
  toKey({ kind: state.kind, id })

/**
 * Returns the files, each with the id of the prompt or fragment that it describes, and with the same ids in references
 * to fragments. If `keys` contains the id in the front matter, the file describes the prompt or fragment with this id.
 * Any other file keeps the id that `parsePromptFiles` derived from the workspace. So an id of another workspace is
 * never used, and every import of the same files into a workspace finds the same prompts.
 */
const matchFiles = (
  keys: ReadonlySet<string>,
  files: ReadonlyArray<ContentFile>
): ReadonlyArray<ContentFile> => {
  const findId = ({ id, file_id, state }: ContentFile): string =>
    file_id !== null && keys.has(toKey({ kind: state.kind, id: file_id })) ? file_id : id
  const fragmentIds = new Map(
    files.flatMap((file) => (file.state.kind === "fragment" ? [[file.id, findId(file)]] : []))
  )
  const matchState = (state: ContentState): ContentState =>
    state.kind === "fragment"
      ? state
      : {
          ...state,
          fragments: state.fragments.map(({ fragment_id, variable_overrides }) => ({
            fragment_id: fragmentIds.get(fragment_id) ?? fragment_id,
            variable_overrides
          }))
        }
  return files.map((file) => ({ ...file, id: findId(file), state: matchState(file.state) }))
}

/**
 * Compares a workspace with the files of a directory. Returns a pair for each file, in the order of the files, and then
 * for each prompt and fragment without a file. A file can also describe a prompt that is archived, or that was deleted
 * since the latest import. Fails if two files describe the same prompt or fragment.
 */
export const compare = (
  content: WorkspaceContent,
  files: ReadonlyArray<ContentFile>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> => {
  const items = new Map(readItems(content).map((item) => [toFileKey(item), item]))
  const importedHashes = new Map(content.importedStates.map((imported) => [toKey(imported), imported.hash]))
  const isImported = importedHashes.size > 0
  const matched = matchFiles(new Set([...items.keys(), ...importedHashes.keys()]), files)
  const filesByKey = Map.groupBy(matched, toFileKey)
  const duplicates = [...filesByKey.values()].flatMap(([first, ...others]) =>
    others.map(({ path }) => ({ path, message: `has the id of ${first?.path}` }))
  )
  if (duplicates.length > 0) return Result.fail(InvalidFiles(duplicates))
  const toPair = (key: string, { id, state: { kind } }: Pick<ContentFile, "id" | "state">): Pair => {
    const item = items.get(key)
    const [file] = filesByKey.get(key) ?? []
    return {
      kind,
      id,
      item,
      file,
      workspaceHash: item?.isArchived === false ? hashState(item.state) : undefined,
      fileHash: file && hashState(file.state),
      importedHash: importedHashes.get(key),
      isImported
    }
  }
  const all = new Map<string, Pick<ContentFile, "id" | "state">>([
    ...matched.map((file) => [toFileKey(file), file] as const),
    ...items
  ])
  return Result.succeed([...all].map(([key, fileOrItem]) => toPair(key, fileOrItem)))
}
