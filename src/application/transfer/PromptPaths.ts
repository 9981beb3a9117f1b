import { createHash } from "node:crypto"
import { posix } from "node:path"
import {
  type ContentFile,
  type ContentItem,
  type FilePlace,
  type FileSource,
  getName,
  readItems,
  toFileKey,
  toKey
} from "./ContentFile.ts"
import type { ImportedFile } from "../../domain/workspace/ImportedFile.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

export const extension = ".md"

/**
 * Derives the id of a new prompt or fragment: a version 5 UUID. The namespace of the UUID is the id of the workspace.
 * The name from which the UUID is made is the id in the file, or the path of the file if the file contains no id.
 */
export const deriveId = (workspace: WorkspaceId, name: string): string => {
  const namespace = Buffer.from(workspace.replaceAll("-", ""), "hex")
  const bytes = createHash("sha1").update(namespace).update(name).digest().subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString("hex")
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")
}

/** Returns the name by which front matter refers to a fragment: its path below `fragments/`, without the extension. */
export const fragmentName = (path: string): string => path.slice(path.indexOf("/") + 1, -extension.length)

const decodeSegment = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Returns the folder that the path of a prompt denotes, or null if the file is directly in `prompts/`. */
export const pathToFolder = (path: string): string | null => {
  const directory = posix.dirname(path).split("/").slice(1)
  return directory.length === 0 ? null : directory.map(decodeSegment).join("/")
}

/**
 * Matches a part of a folder's name that common file systems accept as a directory name. Matches neither a name that
 * ends with `.md`, which a prompt file could have, nor a name with `%`, because `pathToFolder` decodes
 * percent-encoding.
 */
const plainSegment = /^(?!\.)[^%\\:*?"<>|\p{Cc}]{1,60}(?<![. ]|\.md)$/iu

/** Normalizes the case and the Unicode form of a path, because many file systems ignore them. */
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
    .toWellFormed() || "untitled"

/**
 * Returns the directory for new files of a folder: `prompts/` and the folder's name if a path can express this name,
 * otherwise `prompts/` and a name made from the folder's name.
 */
const folderToDirectory = (folder: string): string =>
  `prompts/${folder.split("/").every((part) => plainSegment.test(part)) ? folder : toFileName(folder)}`

/** Returns a path for a new file. `taken` contains the paths that are not available, normalized by `foldCase`. */
const makePath = ({ id, state }: ContentItem, taken: ReadonlySet<string>): string => {
  const folder = state.kind === "prompt" ? state.folder : null
  const directory = folder === null ? `${state.kind}s` : folderToDirectory(folder)
  let path = `${directory}/${toFileName(getName(state))}`
  while (taken.has(foldCase(path + extension))) path += `-${id.slice(-8)}`
  return path + extension
}

/**
 * Returns true if `readTexts` can read a file at the path. A recorded path that fails this check could lead out of the
 * directory.
 */
const isReadablePath = (kind: ImportedFile["kind"], path: string): boolean =>
  path.startsWith(`${kind}s/`) &&
  path.endsWith(extension) &&
  !path.includes("\0") &&
  path.split("/").every((segment) => segment !== "" && !segment.startsWith("."))

/**
 * Assigns a path to each fragment and to each prompt that is not archived: the path of its first record whose path is
 * readable and not taken. A path is taken if it was assigned for an earlier record, even if the workspace does not have
 * the prompt or fragment of that record. If no record has a usable path, the path is made from the folder and the title
 * or name, and the file contains the id.
 */
export const assignPaths = (
  content: FileSource,
  records: ReadonlyArray<ImportedFile> = []
): ReadonlyArray<ContentFile> => {
  const paths = new Set<string>()
  const places = new Map<string, FilePlace>()
  for (const { kind, target_id, path, file_id } of records) {
    const key = toKey(kind, target_id)
    if (places.has(key) || paths.has(path) || !isReadablePath(kind, path)) continue
    paths.add(path)
    places.set(key, { path, file_id })
  }
  // Recorded paths may differ from each other only in case. A new path must differ in more than case from every other
  // path and from every directory.
  const taken = new Set([...paths].flatMap(withAncestors).map(foldCase))
  const items = [...readItems(content).values()].filter(({ isArchived }) => !isArchived)
  return items.map((item) => {
    const place = places.get(toFileKey(item)) ?? { path: makePath(item, taken), file_id: item.id }
    taken.add(foldCase(place.path))
    return { id: item.id, ...place, state: item.state }
  })
}
