import { createHash } from "node:crypto"
import { posix } from "node:path"
import { toRecordKey } from "../../../../application/formats/files/FileRecords.ts"
import {
  type FileIdentity,
  type FileSource,
  type PromptFile,
  type PromptFiles,
  toPromptFiles
} from "../../../../application/formats/files/PromptFiles.ts"
import type { ImportedFile } from "../../../../domain/ImportedFile.ts"
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
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`

/** The longest file name of common file systems, in bytes. */
const maxSegmentBytes = 255

/** Shortens a name that is too long for a file system. A hash keeps names with the same beginning apart. */
const shortenSegment = (segment: string): string => {
  if (Buffer.byteLength(segment) <= maxSegmentBytes) return segment
  const ending = `~${createHash("sha256").update(segment).digest("hex").slice(0, 16)}`
  let room = maxSegmentBytes - ending.length
  let beginning = ""
  for (const character of segment) {
    room -= Buffer.byteLength(character)
    if (room < 0) break
    beginning += character
  }
  return beginning + ending
}

/** Percent-encodes the characters that some file systems reject. */
const encodeSegment = (segment: string): string =>
  segment.replace(/[%\\:*?"<>|\p{Cc}]|^\.|[. ]$/gu, (text) =>
    text.charCodeAt(0) < 0x80 ? percentEncode(text) : encodeURIComponent(text)
  )

/** Converts the name of a folder to a path. */
const folderToPath = (name: string): string =>
  name.split("/").includes("")
    ? shortenSegment(encodeSegment(name).replaceAll("/", "%2F"))
    : name
        .split("/")
        .map((segment) => shortenSegment(encodeSegment(segment)))
        .join("/")

/** Returns the directory of a folder's prompts. */
const folderToDirectory = (folder: string | null): string =>
  folder === null || folder === "" ? "prompts" : `prompts/${folderToPath(folder)}`

/** Returns a directory and its ancestors, outermost first. */
const withAncestors = (directory: string): ReadonlyArray<string> =>
  directory.split("/").map((_, index, segments) => segments.slice(0, index + 1).join("/"))

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

/** Generates suffixes that distinguish files with the same file name. Never ends. */
const generateSuffixes = function* (id: string): Generator<string> {
  yield* ["", `-${id.slice(0, 8)}`, `-${id}`]
  for (let count = 2; ; count++) yield `-${id}-${count}`
}

/** Allocates paths that differ from each other and from directories, even if case is ignored. */
class PathAllocator {
  readonly #paths = new Set<string>()
  readonly #files = new Set<string>()
  readonly #directories = new Set<string>()

  /** Takes a path that a file had already: paths that differ only in case may both exist. */
  takeRecorded(path: string): boolean {
    const directory = posix.dirname(path)
    if (this.#paths.has(path) || this.#directories.has(foldCase(path)) || this.isBlocked(directory))
      return false
    this.#paths.add(path)
    this.#files.add(foldCase(path))
    this.addDirectory(directory)
    return true
  }

  /** Takes a path if no file and no directory has it, and none of its directories is a file. */
  take(path: string): boolean {
    return !this.#files.has(foldCase(path)) && this.takeRecorded(path)
  }

  /** Returns true if a directory or one of its ancestors is a file. */
  isBlocked(directory: string): boolean {
    return withAncestors(directory).some((ancestor) => this.#files.has(foldCase(ancestor)))
  }

  addDirectory(directory: string): void {
    for (const ancestor of withAncestors(directory)) this.#directories.add(foldCase(ancestor))
  }

  /** Takes a path for a title in a directory that is not blocked. */
  allocate(directory: string, title: string, id: string): string {
    for (const suffix of generateSuffixes(id)) {
      const path = `${directory}/${toFileName(title)}${suffix}${extension}`
      if (this.take(path)) return path
    }
    throw new Error("unreachable: suffixes never end")
  }
}

/** The place of a prompt or fragment that has a file already. */
export type RecordedPlace = Omit<ImportedFile, "hash">

/** Returns true for a path that a directory of prompts can have, so that no record leads out of the directory. */
const isReadablePath = ({ kind, path }: RecordedPlace): boolean =>
  path.startsWith(`${kind}s/`) &&
  path.endsWith(extension) &&
  !path.includes("\0") &&
  path.split("/").every((segment) => segment !== "" && !segment.startsWith("."))

/**
 * Assigns a place to each prompt that is not archived and to each fragment: its recorded place, the first if
 * there are several, or otherwise a path made of folder and title, with the id in the file. A recorded place is not
 * used if its path is taken, as all paths in `reservedPaths` are.
 */
export const assignPaths = (
  content: FileSource,
  recordedPlaces: ReadonlyArray<RecordedPlace> = [],
  reservedPaths: ReadonlyArray<string> = []
): PromptFiles => {
  const prompts = content.prompts.filter((prompt) => !prompt.is_archived)
  const allocator = new PathAllocator()
  for (const path of reservedPaths) allocator.takeRecorded(path)

  const keysWithoutPlace = new Set([
    ...prompts.map(({ id }) => toRecordKey({ kind: "prompt", target_id: id })),
    ...content.fragments.map(({ id }) => toRecordKey({ kind: "fragment", target_id: id }))
  ])
  const places = new Map<string, FileIdentity>()
  for (const place of recordedPlaces) {
    const key = toRecordKey(place)
    if (!keysWithoutPlace.has(key) || !isReadablePath(place) || !allocator.takeRecorded(place.path)) continue
    keysWithoutPlace.delete(key)
    places.set(key, { path: place.path, file_id: place.file_id })
  }

  const folderNames = new Map(content.folders.map(({ id, name }) => [id, name]))
  const toDirectory = (folder: string | null): string => {
    const directory = folderToDirectory(folder)
    return allocator.isBlocked(directory) ? "prompts" : directory
  }
  const newDirectories = prompts
    .filter(({ id }) => keysWithoutPlace.has(toRecordKey({ kind: "prompt", target_id: id })))
    .map(({ folder_id }) => toDirectory(folder_id === null ? null : (folderNames.get(folder_id) ?? null)))
  for (const directory of newDirectories) allocator.addDirectory(directory)
  return toPromptFiles(content, {
    prompt: ({ title, id }, folder) =>
      places.get(toRecordKey({ kind: "prompt", target_id: id })) ?? {
        path: allocator.allocate(toDirectory(folder), title, id),
        file_id: id
      },
    fragment: ({ name, id }) =>
      places.get(toRecordKey({ kind: "fragment", target_id: id })) ?? {
        path: allocator.allocate("fragments", name, id),
        file_id: id
      }
  })
}

/** Makes a predicate: true if the path of a prompt alone denotes its folder, even if case is ignored. */
export const makeHasFolderInPath = (prompts: ReadonlyArray<PromptFile>) => {
  const spellings = new Map<string, string>()
  const ambiguous = new Set<string>()
  for (const directory of new Set(prompts.map(({ path }) => posix.dirname(path)))) {
    for (const ancestor of withAncestors(directory)) {
      const key = foldCase(ancestor)
      if ((spellings.get(key) ?? ancestor) !== ancestor) ambiguous.add(key)
      spellings.set(key, ancestor)
    }
  }
  return ({ path, folder }: PromptFile): boolean =>
    pathToFolder(path) === folder &&
    !withAncestors(posix.dirname(path)).some((ancestor) => ambiguous.has(foldCase(ancestor)))
}
