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
} from "../../../../application/formats/files/ContentFile.ts"
import type { ImportedFile } from "../../../../domain/workspace/ImportedFile.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"

/** The extension of prompts and fragments. */
export const extension = ".md"

/**
 * Derives the id that a file gives to a new prompt or fragment of a workspace: a version 5 UUID of the id in the file,
 * or of the path of a file without an id, in the namespace of the workspace.
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

/** Returns the folder that the path of a prompt denotes; null directly in `prompts/`. */
export const pathToFolder = (path: string): string | null => {
  const directory = posix.dirname(path).split("/").slice(1)
  return directory.length === 0 ? null : directory.map(decodeSegment).join("/")
}

const percentEncode = (character: string): string =>
  character.charCodeAt(0) < 0x80
    ? `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`
    : encodeURIComponent(character)

/** The longest file name of common file systems, in bytes. */
const maxSegmentBytes = 255

/** Shortens a name that is too long for a file system. A hash keeps names with the same beginning apart. */
const shortenSegment = (segment: string): string =>
  Buffer.byteLength(segment) <= maxSegmentBytes
    ? segment
    : `${segment.slice(0, 50).toWellFormed()}~${createHash("sha256").update(segment).digest("hex").slice(0, 16)}`

/**
 * Converts a part of a folder's name to the name of a directory. Percent-encodes the characters that some file systems
 * reject, and the dot of `.md`, so that no directory has the name of a file.
 */
const toSegment = (part: string): string =>
  shortenSegment(part.replace(/[%\\:*?"<>|/\p{Cc}]|^\.|[. ]$|\.(?=md$)/giu, percentEncode))

/** Returns the directory of a folder's prompts. */
const folderToDirectory = (folder: string | null): string => {
  if (folder === null || folder === "") return "prompts"
  const parts = folder.split("/")
  return ["prompts", ...(parts.includes("") ? [folder] : parts).map(toSegment)].join("/")
}

/** Returns a path and its ancestors, outermost first. */
const withAncestors = (path: string): ReadonlyArray<string> =>
  path.split("/").map((_, index, segments) => segments.slice(0, index + 1).join("/"))

/** Normalizes a path as file systems do that ignore case. */
const foldCase = (path: string): string => path.normalize("NFC").toLowerCase()

/** Converts a title to a file name without an extension. */
const toFileName = (title: string): string =>
  title
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, 50)
    .replace(/^-|-$/g, "")
    .toWellFormed() || "untitled"

/** Returns a path for a new file that `taken`, a set of paths without case, does not contain. */
const makePath = ({ id, state }: ContentItem, taken: ReadonlySet<string>): string => {
  const directory = state.kind === "prompt" ? folderToDirectory(state.folder) : "fragments"
  const toPath = (suffix: string) => `${directory}/${toFileName(getName(state))}${suffix}${extension}`
  const suffixes = ["", `-${id.slice(0, 8)}`, `-${id}`]
  const path = suffixes.map(toPath).find((path) => !taken.has(foldCase(path)))
  if (path !== undefined) return path
  let count = 2
  while (taken.has(foldCase(toPath(`-${id}-${count}`)))) count++
  return toPath(`-${id}-${count}`)
}

/** Returns true for a path that a directory of prompts can have, so that no record leads out of the directory. */
const isReadablePath = (kind: ImportedFile["kind"], path: string): boolean =>
  path.startsWith(`${kind}s/`) &&
  path.endsWith(extension) &&
  !path.includes("\0") &&
  path.split("/").every((segment) => segment !== "" && !segment.startsWith("."))

/**
 * Assigns a place to each prompt that is not archived and to each fragment: the first of its recorded places whose path
 * is not taken, or otherwise a path made of folder and title, with the id in the file. All paths in `reservedPaths` are
 * taken.
 */
export const assignPaths = (
  content: FileSource,
  records: ReadonlyArray<ImportedFile> = [],
  reservedPaths: ReadonlyArray<string> = []
): ReadonlyArray<ContentFile> => {
  const items = [...readItems(content).values()].filter(({ isArchived }) => !isArchived)
  const keys = new Set(items.map(toFileKey))
  const paths = new Set(reservedPaths)
  const places = new Map<string, FilePlace>()
  for (const { kind, target_id, path, file_id } of records) {
    const key = toKey(kind, target_id)
    if (!keys.has(key) || places.has(key) || paths.has(path) || !isReadablePath(kind, path)) continue
    paths.add(path)
    places.set(key, { path, file_id })
  }
  // Recorded paths that differ only in case may all exist. A new path differs from them, and from their directories.
  const taken = new Set([...paths].flatMap(withAncestors).map(foldCase))
  return items.map((item) => {
    const place = places.get(toFileKey(item)) ?? { path: makePath(item, taken), file_id: item.id }
    taken.add(foldCase(place.path))
    return { id: item.id, ...place, state: item.state }
  })
}

/** Makes a predicate: true if the path of a file determines the file's folder, also on a file system that ignores case. */
export const makeHasFolderInPath = (files: ReadonlyArray<FilePlace>) => {
  const directories = new Set(files.flatMap(({ path }) => withAncestors(posix.dirname(path))))
  const spellings = Map.groupBy(directories, foldCase)
  return ({ path, state }: ContentFile): boolean =>
    state.kind === "fragment" ||
    (pathToFolder(path) === state.folder &&
      withAncestors(posix.dirname(path)).every((ancestor) => spellings.get(foldCase(ancestor))?.length === 1))
}
