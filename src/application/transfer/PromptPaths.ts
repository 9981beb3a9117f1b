import { createHash } from "node:crypto"
import { posix } from "node:path"
import { type ContentItem, getName } from "./ContentState.ts"
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
export const toFragmentName = (path: string): string => path.slice(path.indexOf("/") + 1, -extension.length)

/** Returns the path of the fragment with a name. */
export const toFragmentPath = (name: string): string => `fragments/${name}${extension}`

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

/**
 * Returns a function that makes paths for new files from their folders and their titles or names. Each path differs in
 * more than case from the existing paths and their directories, and from every path that the function made before.
 */
export const makePathFactory = (existing: Iterable<string>): ((item: ContentItem) => string) => {
  const taken = new Set([...existing].flatMap(withAncestors).map(foldCase))
  return ({ id, state }) => {
    const folder = state.kind === "prompt" ? state.folder : null
    const directory = folder === null ? `${state.kind}s` : folderToDirectory(folder)
    let path = `${directory}/${toFileName(getName(state))}`
    while (taken.has(foldCase(path + extension))) path += `-${id.slice(-8)}`
    taken.add(foldCase(path + extension))
    return path + extension
  }
}
