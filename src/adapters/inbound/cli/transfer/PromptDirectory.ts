import { isUtf8 } from "node:buffer"
import type { Dirent } from "node:fs"
import { mkdir, readdir, readFile, stat, unlink, writeFile } from "node:fs/promises"
import { dirname, join, posix } from "node:path"
import * as Effect from "effect/Effect"
import { extension, InvalidFiles, type Texts } from "../../../../application/transfer/PromptFile.ts"
import type { Problem } from "../../../../domain/WorkspaceContent.ts"
import { type CommandError, makeReadError, makeWriteError } from "../output/CommandError.ts"
import { ignoreMissing } from "../output/OutputFile.ts"

const listEntries = async (directory: string): Promise<ReadonlyArray<Dirent>> =>
  (await readdir(directory, { withFileTypes: true }).catch(ignoreMissing)) ?? []

/** Lists `prompts/` and `fragments/`, if they exist. */
const listParts = async (directory: string): Promise<ReadonlyArray<Dirent>> =>
  (await listEntries(directory)).filter(({ name }) => name === "prompts" || name === "fragments")

/**
 * Reads the `.md` files below `prompts/` and `fragments/` of a directory, and returns their texts by path. Ignores
 * hidden files and directories, files with other extensions, and everything else in the directory. Fails for a file
 * that is not UTF-8 and for a symbolic link. A directory that does not exist has no files.
 *
 * @param mustHavePrompts makes a directory without `prompts/` an error
 */
export const readTexts = Effect.fnUntraced(function* (directory: string, mustHavePrompts: boolean) {
  const texts = new Map<string, string>()
  const problems: Array<Problem> = []
  const readEntries = async (parent: string, entries: ReadonlyArray<Dirent>): Promise<void> => {
    for (const entry of entries) {
      const path = posix.join(parent, entry.name)
      if (entry.name.startsWith(".")) continue
      if (entry.isDirectory()) await readEntries(path, await listEntries(join(directory, path)))
      else if (entry.isSymbolicLink())
        problems.push({ path, message: "is a symbolic link, which is not followed" })
      else if (parent === "") problems.push({ path, message: "is not a directory" })
      else if (entry.isFile() && path.endsWith(extension)) {
        const bytes = await readFile(join(directory, path))
        if (isUtf8(bytes)) texts.set(path, bytes.toString())
        else problems.push({ path, message: "is not UTF-8" })
      }
    }
  }
  yield* Effect.tryPromise({
    try: async () => {
      const parts = await listParts(directory)
      if (mustHavePrompts && !parts.some(({ name }) => name === "prompts"))
        throw new Error("it has no prompts/ directory")
      await readEntries("", parts)
    },
    catch: (error) => makeReadError(directory, error)
  })
  return problems.length > 0 ? yield* Effect.fail(InvalidFiles(problems)) : (texts as Texts)
})

/** Throws if `path` is a directory, or if one of its parents is a file. */
const requireNoDirectory = async (path: string): Promise<void> => {
  const existing = await stat(path).catch(ignoreMissing)
  if (existing?.isDirectory() === true) throw new Error(`${path} is a directory`)
}

/**
 * Writes and removes files of a directory, which is created if it does not exist. Changes nothing if a file cannot have
 * one of the paths. Directories that become empty stay. Not interruptible, so that no file is missing.
 */
export const updateDirectory = (
  directory: string,
  textsToWrite: Texts,
  pathsToRemove: ReadonlyArray<string>
): Effect.Effect<void, CommandError> =>
  Effect.tryPromise({
    try: async () => {
      for (const path of textsToWrite.keys()) await requireNoDirectory(join(directory, path))
      await mkdir(join(directory, "prompts"), { recursive: true })
      for (const [path, text] of textsToWrite) {
        await mkdir(join(directory, dirname(path)), { recursive: true })
        await writeFile(join(directory, path), text)
      }
      for (const path of pathsToRemove) await unlink(join(directory, path))
    },
    catch: (error) => makeWriteError(directory, error)
  }).pipe(Effect.uninterruptible)

/** Fails if a directory contains `prompts/` or `fragments/`. */
export const requireNoFiles = (directory: string): Effect.Effect<void, CommandError> =>
  Effect.tryPromise({
    try: async () => {
      const [existing] = await listParts(directory)
      if (existing !== undefined)
        throw new Error(
          `it already contains ${existing.name}/; add --update to update it, or choose another directory`
        )
    },
    catch: (error) => makeWriteError(directory, error)
  })
