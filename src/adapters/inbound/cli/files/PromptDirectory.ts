import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
  writeFile
} from "node:fs/promises"
import { dirname, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Problem } from "../../../../domain/Problem.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { InvalidFiles, type PromptFiles } from "../../../../application/formats/files/PromptFiles.ts"
import { type CommandError, makeReadError, makeWriteError } from "../output/CommandError.ts"
import { makeProgress } from "../output/Progress.ts"
import { extension } from "./PromptPaths.ts"
import { parsePromptFiles, renderFiles } from "./PromptText.ts"

const decodeUtf8 = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)

const symbolicLinkMessage = "is a symbolic link, which is not followed"

/** The files of a directory: their paths, with slashes, and the problems of other entries. */
interface Listing {
  readonly paths: ReadonlyArray<string>
  readonly problems: ReadonlyArray<Problem>
}

/** Lists the files of a directory. Hidden files and other extensions are ignored. */
const listFiles = async (directory: string, names: ReadonlyArray<string>): Promise<Listing> => {
  const paths: Array<string> = []
  const problems: Array<Problem> = []
  for (const part of ["prompts", "fragments"].filter((name) => names.includes(name))) {
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

/** The texts of a directory's files by path. */
type Texts = ReadonlyMap<string, string>

/** Reads the files of a listing. Calls `onFile` for each. */
const readListed = async (
  directory: string,
  { paths, problems: listed }: Listing,
  onFile: () => void
): Promise<Result.Result<Texts, InvalidFiles>> => {
  const texts = new Map<string, string>()
  const problems = [...listed]
  for (const path of paths) {
    const bytes = await readFile(join(directory, path))
    try {
      texts.set(path, decodeUtf8(bytes))
    } catch {
      problems.push({ path, message: "is not UTF-8" })
    }
    onFile()
  }
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed(texts)
}

const attemptToRead = <A>(directory: string, read: () => Promise<A>) =>
  Effect.tryPromise({ try: read, catch: (error) => makeReadError(directory, error) })

/** Reads a directory of prompts for a workspace. Shows the progress on stderr. */
export const readDirectory = Effect.fnUntraced(function* (directory: string, workspace: WorkspaceId) {
  const listing = yield* attemptToRead(directory, async () => {
    const names = await readdir(directory)
    if (!names.includes("prompts")) throw new Error("it has no prompts/ directory")
    return listFiles(directory, names)
  })
  // A file is read, and then parsed.
  const progress = makeProgress({ label: "Reading", total: listing.paths.length, unit: "files" })
  const onStep = () => progress.add(0.5)
  return yield* attemptToRead(directory, () => readListed(directory, listing, onStep)).pipe(
    Effect.flatMap(Effect.fromResult),
    Effect.flatMap((texts) => Effect.fromResult(parsePromptFiles(workspace, texts, onStep))),
    Effect.ensuring(Effect.sync(progress.end))
  )
})

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

/** Reads the texts of a directory's files by path. A directory that does not exist, or has no prompts, has no files. */
export const readTexts = Effect.fnUntraced(function* (directory: string) {
  const listing = yield* attemptToRead(directory, async () => {
    const names = await readdir(directory).catch((error) => {
      if (isMissing(error)) return []
      throw error
    })
    return listFiles(directory, names)
  })
  const progress = makeProgress({ label: "Reading", total: listing.paths.length, unit: "files" })
  return yield* attemptToRead(directory, () => readListed(directory, listing, () => progress.add(1))).pipe(
    Effect.flatMap(Effect.fromResult),
    Effect.ensuring(Effect.sync(progress.end))
  )
})

/** A temporary directory in which the files are written before they are moved into place together. */
interface Staging {
  readonly temporaryDirectory: string
  /** The directory of the files, in the temporary directory. */
  readonly files: string
  /** Moves the files into place. */
  readonly commit: () => Promise<void>
}

const makeStaging = async (parent: string, commit: (files: string) => Promise<void>): Promise<Staging> => {
  const temporaryDirectory = await mkdtemp(join(parent, ".export-"))
  // The temporary directory is private; a directory in it has the default mode.
  const files = join(temporaryDirectory, "files")
  await mkdir(join(files, "prompts"), { recursive: true })
  return { temporaryDirectory, files, commit: () => commit(files) }
}

/**
 * Moves the staged files into an existing directory. `prompts/` is moved last: an import rejects a directory without
 * it.
 */
const moveInto = (directory: string) => async (files: string) => {
  const hasFragments = (await readdir(files)).includes("fragments")
  if (hasFragments) await rename(join(files, "fragments"), join(directory, "fragments"))
  try {
    await rename(join(files, "prompts"), join(directory, "prompts"))
  } catch (error) {
    if (hasFragments) await rename(join(directory, "fragments"), join(files, "fragments"))
    throw error
  }
}

const prepareStaging = async (directory: string): Promise<Staging> => {
  const exists = await stat(directory).then(
    () => true,
    (error) => {
      if (isMissing(error)) return false
      throw error
    }
  )
  if (!exists) {
    const target = resolve(directory)
    await mkdir(dirname(target), { recursive: true })
    return makeStaging(dirname(target), (files) => rename(files, target))
  }
  const [existing] = (await readdir(directory)).filter((name) => ["prompts", "fragments"].includes(name))
  if (existing !== undefined)
    throw new Error(
      `it already contains ${existing}/; add --update to update it, or choose another directory`
    )
  return makeStaging(directory, moveInto(directory))
}

/** Writes texts into a temporary directory, and then moves them into place. Shows the progress on stderr. */
const writeStaged = (
  directory: string,
  prepare: () => Promise<Staging>,
  makeTexts: () => Texts
): Effect.Effect<void, CommandError> => {
  // No step is interruptible, so that nothing is written while the temporary directory is removed.
  const attempt = <A>(step: () => Promise<A>) =>
    Effect.uninterruptible(
      Effect.tryPromise({ try: step, catch: (error) => makeWriteError(directory, error) })
    )
  return Effect.acquireUseRelease(
    attempt(prepare),
    (staging) =>
      Effect.gen(function* () {
        const texts = yield* attempt(async () => makeTexts())
        const progress = makeProgress({ label: "Writing", total: texts.size, unit: "files" })
        yield* Effect.forEach(
          texts,
          ([path, text]) =>
            attempt(async () => {
              await mkdir(join(staging.files, dirname(path)), { recursive: true })
              await writeFile(join(staging.files, path), text, { flag: "wx" })
              progress.add(1)
            }),
          { discard: true }
        ).pipe(Effect.ensuring(Effect.sync(progress.end)))
        yield* attempt(staging.commit)
      }),
    ({ temporaryDirectory }) => Effect.promise(() => rm(temporaryDirectory, { recursive: true, force: true }))
  )
}

/** Writes files into a directory that has no prompts: all of them or, on failure or interruption, none. */
export const writeDirectory = (directory: string, files: PromptFiles): Effect.Effect<void, CommandError> =>
  writeStaged(
    directory,
    () => prepareStaging(directory),
    () => renderFiles(files)
  )

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

/**
 * Replaces and removes files of a directory, which is created if it does not exist. All texts are written beside the
 * files first, so that a full disk changes nothing.
 */
export const updateDirectory = (
  directory: string,
  textsToWrite: Texts,
  pathsToRemove: ReadonlyArray<string>
): Effect.Effect<void, CommandError> =>
  writeStaged(
    directory,
    async () => {
      await mkdir(join(directory, "prompts"), { recursive: true })
      return makeStaging(directory, async (files) => {
        for (const path of pathsToRemove) await removeFile(directory, path)
        for (const path of textsToWrite.keys()) {
          await mkdir(join(directory, dirname(path)), { recursive: true })
          await rename(join(files, path), join(directory, path))
        }
      })
    },
    () => textsToWrite
  )
