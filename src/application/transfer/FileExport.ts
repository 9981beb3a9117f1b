import * as Data from "effect/Data"
import * as Order from "effect/Order"
import * as Result from "effect/Result"
import { type WorkspaceContent } from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { getName } from "./ContentState.ts"
import { type ContentItem, isDifferent, type Pair, pairWithFiles } from "./Pairing.ts"
import { extension, type InvalidFiles, parseFiles, type Texts, toFragmentName } from "./PromptFile.ts"
import { renderFile, updateFile } from "./PromptFileText.ts"

/** The changes that make a directory describe a workspace, sorted by path. */
export interface FileExport {
  readonly textsToWrite: Texts
  /** The paths of files of archived prompts, and of files without a prompt or fragment in the workspace. */
  readonly pathsToRemove: ReadonlyArray<string>
}

/** An export failed, because it would replace or remove files that were added or edited since the latest import. */
export class UnimportedFiles extends Data.TaggedError("UnimportedFiles")<{
  readonly paths: ReadonlyArray<string>
}> {}

/** The pattern of the names that Windows reserves for devices, in lower case. */
const deviceName = String.raw`(?:con(?:in\$|out\$)?|prn|aux|nul|(?:com|lpt)[\d¹²³])`
const wholeDeviceName = new RegExp(`^${deviceName}$`)

/**
 * Matches a part of a folder's name that common file systems accept as a directory name. Does not match a name that
 * ends with `.md`, because a prompt file could have this name. Does not match a name with `%`, because percent-encoding
 * in paths is decoded.
 */
const plainSegment = new RegExp(
  String.raw`^(?!\.|${deviceName} *(?:\.|$))[^%\\:*?"<>|\p{Cc}]{1,60}(?<![. ]|\.md)$`,
  "iu"
)

/** Normalizes the case and the Unicode form of a path, because many file systems ignore differences in both. */
const foldCase = (path: string): string => path.normalize("NFC").toLowerCase()

const withAncestors = (path: string): ReadonlyArray<string> =>
  path.split("/").map((_, index, segments) => segments.slice(0, index + 1).join("/"))

/** Converts a title to a file name without an extension. */
const toFileName = (title: string): string =>
  title
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, 50)
    .replace(/^-|-$/g, "")
    .replace(wholeDeviceName, "$&-file")
    .toWellFormed() || "untitled"

/**
 * Returns a function that makes paths for new files from their folders and their titles or names. Even without regard to
 * letter case, no path equals an existing path, a directory of an existing path, or an earlier result.
 */
const makePathFactory = (existing: Iterable<string>): ((item: ContentItem) => string) => {
  const taken = new Set([...existing].flatMap(withAncestors).map(foldCase))
  return ({ id, state }) => {
    const folder = state.kind === "prompt" ? state.folder : null
    const isPlain = folder?.split("/").every((part) => plainSegment.test(part))
    const directory = folder === null ? `${state.kind}s` : `prompts/${isPlain ? folder : toFileName(folder)}`
    let path = `${directory}/${toFileName(getName(state))}`
    while (taken.has(foldCase(path + extension))) path += `-${id.slice(-8)}`
    taken.add(foldCase(path + extension))
    return path + extension
  }
}

/** Omits fragments that have no file and that only archived prompts contain. */
const omitUnusedFragments = (
  pairs: ReadonlyArray<Pair>,
  { prompts }: WorkspaceContent
): ReadonlyArray<Pair> => {
  const listFragments = (isArchived: boolean) =>
    new Set<string>(
      prompts
        .filter(({ is_archived }) => is_archived === isArchived)
        .flatMap(({ fragments }) => fragments.map(({ fragment_id }) => fragment_id))
    )
  const [live, archived] = [listFragments(false), listFragments(true)]
  return pairs.filter(
    ({ kind, id, file }) => kind === "prompt" || file !== undefined || live.has(id) || !archived.has(id)
  )
}

/**
 * Computes the changes that make a directory describe a workspace. A file that already describes the state of its
 * prompt or fragment stays as it is. Any other existing file keeps its path and, if possible, its formatting. A new file
 * contains the id of its prompt or fragment. Without `overwrite`, fails if the changes would replace or remove a file
 * that was added or edited since the latest import.
 *
 * @param texts the existing files
 */
export const planExport = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: Texts,
  overwrite = false
): Result.Result<FileExport, InvalidFiles | UnimportedFiles> =>
  Result.gen(function* () {
    const pairs = yield* pairWithFiles(workspace, content, yield* parseFiles(texts))
    const makePath = makePathFactory(texts.keys())
    const targets = omitUnusedFragments(pairs, content).map((pair) => {
      const { item, file } = pair
      const live = item?.isArchived === false ? item : undefined
      return { ...pair, state: live?.state, path: file?.path ?? (live === undefined ? "" : makePath(live)) }
    })
    const changes = targets.filter(isDifferent).sort(Order.Struct({ path: Order.String }))
    const edited = changes.filter(
      ({ fileHash, importedHash }) => fileHash !== undefined && fileHash !== importedHash
    )
    if (edited.length > 0 && !overwrite)
      return yield* Result.fail(new UnimportedFiles({ paths: edited.map(({ path }) => path) }))

    const fragmentNames = new Map(
      targets.flatMap(({ kind, id, path }) => (kind === "fragment" ? [[id, toFragmentName(path)]] : []))
    )
    const textsToWrite = new Map<string, string>()
    const pathsToRemove: Array<string> = []
    for (const { id, path, file, state } of changes) {
      if (state === undefined) pathsToRemove.push(path)
      else if (file === undefined)
        textsToWrite.set(path, renderFile({ path, file_id: id, state }, fragmentNames))
      else textsToWrite.set(path, updateFile(file, texts.get(path) ?? "", state, fragmentNames))
    }
    return { textsToWrite, pathsToRemove }
  })
