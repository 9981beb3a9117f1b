import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  unlink,
  writeFile
} from "node:fs/promises"
import { dirname, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { InvalidFiles } from "../../../../application/formats/files/ContentFile.ts"
import type { Problem } from "../../../../domain/workspace/Problem.ts"
import { type CommandError, makeReadError, makeWriteError } from "../output/CommandError.ts"
import { makeProgress } from "../output/Progress.ts"
import { extension } from "./PromptPaths.ts"

/** The texts of a directory's files by path, with slashes. */
type Texts = ReadonlyMap<string, string>

/** The directories of prompts and of fragments. */
const parts: ReadonlyArray<string> = ["fragments", "prompts"]

const symbolicLinkMessage = "is a symbolic link, which is not followed"

const decodeUtf8 = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

/** Returns the names in a directory; none if the directory does not exist. */
const listNames = (directory: string): Promise<ReadonlyArray<string>> =>
  readdir(directory).catch((error) => {
    if (isMissing(error)) return []
    throw error
  })

/** The files of a directory: their paths, with slashes, and the problems of other entries. */
interface Listing {
  readonly paths: ReadonlyArray<string>
  readonly problems: ReadonlyArray<Problem>
}

/** Lists the files of a directory. Hidden files and other extensions are ignored. */
const listFiles = async (directory: string, names: ReadonlyArray<string>): Promise<Listing> => {
  const paths: Array<string> = []
  const problems: Array<Problem> = []
  for (const part of parts.filter((name) => names.includes(name))) {
    if ((await lstat(join(directory, part))).isSymbolicLink()) {
      problems.push({ path: part, message: symbolicLinkMessage })
      continue
    }
    for (const entry of await readdir(join(directory, part), { recursive: true, withFileTypes: true })) {
      const path = relative(directory, join(entry.parentPath, entry.name)).split(sep).join("/")
      if (path.split("/").some((segment) => segment.startsWith("."))) continue
      if (entry.isSymbolicLink()) problems.push({ path, message: symbolicLinkMessage })
      if (entry.isFile() && path.endsWith(extension)) paths.push(path)
    }
  }
  return { paths, problems }
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
  const listing = yield* attempt(async () => {
    const names = await listNames(directory)
    if (mustHavePrompts && !names.includes("prompts")) throw new Error("it has no prompts/ directory")
    return listFiles(directory, names)
  })
  const texts = new Map<string, string>()
  const problems = [...listing.problems]
  const progress = makeProgress({ label: "Reading", total: listing.paths.length, unit: "files" })
  const readText = async (path: string) => {
    const bytes = await readFile(join(directory, path))
    try {
      texts.set(path, decodeUtf8(bytes))
    } catch {
      problems.push({ path, message: "is not UTF-8" })
    }
    progress.add(1)
  }
  yield* Effect.forEach(listing.paths, (path) => attempt(() => readText(path)), { discard: true }).pipe(
    Effect.ensuring(Effect.sync(progress.end))
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

/** Moves all files of a directory into another one. Directories that exist in both are merged. */
const moveFiles = async (from: string, to: string): Promise<void> => {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory() && (await listNames(target)).length > 0) await moveFiles(source, target)
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
  pathsToRemove: ReadonlyArray<string> = []
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
      const progress = makeProgress({ label: "Writing", total: textsToWrite.size, unit: "files" })
      const write = ([path, text]: readonly [string, string]) =>
        Effect.tap(
          attempt(() => stage(files, path, text)),
          () => Effect.sync(() => progress.add(1))
        )
      return Effect.forEach(textsToWrite, write, { discard: true }).pipe(
        Effect.ensuring(Effect.sync(progress.end)),
        Effect.andThen(
          attempt(async () => {
            for (const path of pathsToRemove) await removeFile(directory, path)
            await moveFiles(files, directory)
          })
        )
      )
    },
    ({ temporaryDirectory, created }, exit) =>
      Effect.promise(() =>
        rm(Exit.isFailure(exit) ? (created ?? temporaryDirectory) : temporaryDirectory, {
          recursive: true,
          force: true
        })
      )
  )
}

/** Writes texts into a directory. Fails if the directory has prompts or fragments already. */
export const writeDirectory = (directory: string, texts: Texts): Effect.Effect<void, CommandError> =>
  Effect.tryPromise({
    try: async () => {
      const names = await listNames(directory)
      const existing = parts.find((part) => names.includes(part))
      if (existing !== undefined)
        throw new Error(
          `it already contains ${existing}/; add --update to update it, or choose another directory`
        )
    },
    catch: (error) => makeWriteError(directory, error)
  }).pipe(Effect.andThen(updateDirectory(directory, texts)))
