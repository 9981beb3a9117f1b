import { isUtf8 } from "node:buffer"
import type { Dirent } from "node:fs"
import { mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, unlink, writeFile } from "node:fs/promises"
import { dirname, join, posix, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { InvalidFiles } from "../../../../application/formats/files/ContentFile.ts"
import type { Problem } from "../../../../domain/workspace/Problem.ts"
import { type CommandError, makeReadError, makeWriteError } from "../output/CommandError.ts"
import { withProgress } from "../output/Progress.ts"
import { extension } from "./PromptPaths.ts"

/** The texts of a directory's files by path, with slashes. */
type Texts = ReadonlyMap<string, string>

/** Lists the entries of a directory; none if the directory does not exist. */
const listEntries = (directory: string): Promise<ReadonlyArray<Dirent>> =>
  readdir(directory, { withFileTypes: true }).catch((error) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return []
    throw error
  })

/** Lists the directories of prompts and of fragments that a directory has. */
const listParts = async (directory: string): Promise<ReadonlyArray<Dirent>> => {
  const parts = (await listEntries(directory)).filter(
    ({ name }) => name === "prompts" || name === "fragments"
  )
  for (const part of parts)
    if (!part.isDirectory() && !part.isSymbolicLink()) throw new Error(`its ${part.name} is not a directory`)
  return parts
}

/** The files of a directory: their paths, with slashes, and the problems of other entries. */
interface Listing {
  readonly paths: Array<string>
  readonly problems: Array<Problem>
}

/** Adds the files in directories to a listing. Hidden files and other extensions are ignored. */
const addFiles = async (
  { paths, problems }: Listing,
  root: string,
  parent: string,
  entries: ReadonlyArray<Dirent>
): Promise<void> => {
  for (const entry of entries) {
    const path = posix.join(parent, entry.name)
    if (entry.name.startsWith(".")) continue
    if (entry.isSymbolicLink()) problems.push({ path, message: "is a symbolic link, which is not followed" })
    if (entry.isDirectory())
      await addFiles({ paths, problems }, root, path, await listEntries(join(root, path)))
    if (entry.isFile() && path.endsWith(extension)) paths.push(path)
  }
}

/**
 * Reads the texts of a directory's files by path. Shows the progress on stderr. A directory that does not exist has no
 * files.
 *
 * @param mustHavePrompts makes a directory without `prompts/` an error
 */
export const readTexts = Effect.fnUntraced(function* (directory: string, mustHavePrompts: boolean) {
  const attempt = <A>(step: () => Promise<A>) =>
    Effect.tryPromise({ try: step, catch: (error) => makeReadError(directory, error) })
  const listing: Listing = { paths: [], problems: [] }
  yield* attempt(async () => {
    const parts = await listParts(directory)
    if (mustHavePrompts && !parts.some(({ name }) => name === "prompts"))
      throw new Error("it has no prompts/ directory")
    await addFiles(listing, directory, "", parts)
  })
  const { paths, problems } = listing
  const texts = new Map<string, string>()
  const readText = async (path: string) => {
    const bytes = await readFile(join(directory, path))
    if (isUtf8(bytes)) texts.set(path, bytes.toString())
    else problems.push({ path, message: "is not UTF-8" })
  }
  yield* Effect.forEach(paths, (path) => attempt(() => readText(path)), { discard: true }).pipe(
    withProgress("Reading", () => `${texts.size} of ${paths.length} files`)
  )
  return problems.length > 0 ? yield* Effect.fail(InvalidFiles(problems)) : (texts as Texts)
})

/** Removes a file, and the directories that it leaves empty, except `prompts/` and `fragments/`. */
const removeFile = async (directory: string, path: string): Promise<void> => {
  await unlink(join(directory, path))
  for (let parent = dirname(path); parent.includes("/"); parent = dirname(parent)) {
    try {
      await rmdir(join(directory, parent))
    } catch {
      // Other files are in it.
      return
    }
  }
}

/** Removes a directory and its ancestors up to `outermost`, as long as they are empty: other programs may use them. */
const removeEmpty = async (directory: string, outermost: string): Promise<void> => {
  try {
    await rmdir(directory)
  } catch {
    return
  }
  if (directory !== outermost) await removeEmpty(dirname(directory), outermost)
}

/** Moves all files of a directory into another one. Directories that exist in both are merged. */
const moveFiles = async (from: string, to: string): Promise<void> => {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory() && (await listEntries(target)).length > 0) await moveFiles(source, target)
    else await rename(source, target)
  }
}

/** A temporary directory in which files are written before they are moved into place together. */
interface Staging {
  readonly temporaryDirectory: string
  /** The directory of the files, in the temporary directory. */
  readonly files: string
  /** The outermost directory that did not exist before; undefined if the target existed. */
  readonly created: string | undefined
}

const makeStaging = async (directory: string): Promise<Staging> => {
  const created = await mkdir(directory, { recursive: true })
  const temporaryDirectory = await mkdtemp(join(directory, ".export-"))
  // The temporary directory is private; a directory in it has the default mode.
  const files = join(temporaryDirectory, "files")
  await mkdir(join(files, "prompts"), { recursive: true })
  return { temporaryDirectory, files, created }
}

/**
 * Writes and removes files of a directory, which is created if it does not exist. All texts are written into a
 * temporary directory first, so that a failure or an interruption changes nothing. Shows the progress on stderr.
 */
export const updateDirectory = (
  directory: string,
  textsToWrite: Texts,
  pathsToRemove: ReadonlyArray<string>
): Effect.Effect<void, CommandError> => {
  // No step is interruptible, so that nothing is written while the temporary directory is removed.
  const attempt = <A>(step: () => Promise<A>) =>
    Effect.uninterruptible(
      Effect.tryPromise({ try: step, catch: (error) => makeWriteError(directory, error) })
    )
  const stage = async (files: string, path: string, text: string) => {
    await mkdir(join(files, dirname(path)), { recursive: true })
    await writeFile(join(files, path), text, { flag: "wx" })
  }
  return Effect.acquireUseRelease(
    attempt(() => makeStaging(resolve(directory))),
    ({ files }) => {
      let written = 0
      const write = ([path, text]: readonly [string, string]) =>
        attempt(async () => {
          await stage(files, path, text)
          written++
        })
      return Effect.forEach(textsToWrite, write, { discard: true }).pipe(
        withProgress("Writing", () => `${written} of ${textsToWrite.size} files`),
        Effect.andThen(
          attempt(async () => {
            for (const path of pathsToRemove) await removeFile(directory, path)
            await moveFiles(files, directory)
          })
        )
      )
    },
    ({ temporaryDirectory, created }, exit) =>
      Effect.promise(async () => {
        await rm(temporaryDirectory, { recursive: true, force: true })
        if (Exit.isFailure(exit) && created !== undefined) await removeEmpty(resolve(directory), created)
      })
  )
}

/** Fails if a directory has prompts or fragments. */
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
