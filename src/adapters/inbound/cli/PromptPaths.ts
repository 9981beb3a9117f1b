import { createHash } from "node:crypto"
import { posix } from "node:path"
import {
  type FileSource,
  type PromptFile,
  type PromptFiles,
  toPromptFiles
} from "../../../application/formats/PromptFiles.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

/** The extension of prompts and fragments. */
export const extension = ".md"

/** Derives the id of a file without an id: a version 5 UUID of its path, in the namespace of its workspace. */
export const deriveId = (workspace: WorkspaceId, path: string): string => {
  const namespace = Buffer.from(workspace.replaceAll("-", ""), "hex")
  const bytes = createHash("sha1").update(namespace).update(path).digest().subarray(0, 16)
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
const slugify = (title: string): string =>
  title
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, 50)
    .replace(/^-|-$/g, "")
    .toWellFormed() || "untitled"

/** Generates suffixes that distinguish files with the same slug. Never ends. */
const generateSuffixes = function* (id: string): Generator<string> {
  yield* ["", `-${id.slice(0, 8)}`, `-${id}`]
  for (let count = 2; ; count++) yield `-${id}-${count}`
}

/** Makes an allocator of paths that differ from each other and from the directories, even if case is ignored. */
const makePathAllocator = (directories: Iterable<string>) => {
  const used = new Set([...directories].flatMap(withAncestors).map(foldCase))
  return (directory: string, title: string, id: string): string => {
    for (const suffix of generateSuffixes(id)) {
      const path = `${directory}/${slugify(title)}${suffix}${extension}`
      if (used.has(foldCase(path))) continue
      used.add(foldCase(path))
      return path
    }
    throw new Error("unreachable: suffixes never end")
  }
}

/** Assigns a path to each prompt that is not archived and to each fragment. */
export const assignPaths = (content: FileSource): PromptFiles => {
  const usedFolders = new Set(
    content.prompts.filter((prompt) => !prompt.is_archived).map((prompt) => prompt.folder_id)
  )
  const folders = content.folders.filter(({ id }) => usedFolders.has(id))
  const allocatePath = makePathAllocator(folders.map(({ name }) => folderToDirectory(name)))
  return toPromptFiles(content, {
    prompt: ({ title, id }, folder) => allocatePath(folderToDirectory(folder), title, id),
    fragment: ({ name, id }) => allocatePath("fragments", name, id)
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
