import { lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Problem } from "../../../domain/Problem.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { InvalidFiles, type PromptFiles } from "../../../application/formats/PromptFiles.ts"
import { CommandError } from "./CommandError.ts"
import { extension } from "./PromptPaths.ts"
import { parsePromptFiles, renderFiles } from "./PromptText.ts"

const toCommandError = (action: string, error: unknown) =>
  new CommandError({ message: `${action}: ${error instanceof Error ? error.message : String(error)}` })

const decodeUtf8 = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)

const symbolicLinkMessage = "is a symbolic link, which is not followed"

/** Reads the texts of a directory's files by path, with slashes. Hidden files and other extensions are ignored. */
const readTexts = async (
  directory: string
): Promise<Result.Result<ReadonlyMap<string, string>, InvalidFiles>> => {
  const names = await readdir(directory)
  if (!names.includes("prompts")) throw new Error("it has no prompts/ directory")
  const texts = new Map<string, string>()
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
      if (!entry.isFile() || !path.endsWith(extension)) continue
      const bytes = await readFile(join(directory, path))
      try {
        texts.set(path, decodeUtf8(bytes))
      } catch {
        problems.push({ path, message: "is not UTF-8" })
      }
    }
  }
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed(texts)
}

/** Reads a directory of prompts for a workspace. */
export const readDirectory = (
  directory: string,
  workspace: WorkspaceId
): Effect.Effect<PromptFiles, InvalidFiles | CommandError> =>
  Effect.tryPromise({
    try: () => readTexts(directory),
    catch: (error) => toCommandError(`cannot read ${directory}`, error)
  }).pipe(
    Effect.flatMap((texts) =>
      Effect.fromResult(Result.flatMap(texts, (texts) => parsePromptFiles(workspace, texts)))
    )
  )

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

/** A scratch directory in which the files are written before they are moved into place together. */
interface Staging {
  readonly scratch: string
  /** The directory of the files, in the scratch directory. */
  readonly files: string
  /** Moves the files into place. */
  readonly commit: () => Promise<void>
}

const makeStaging = async (parent: string, commit: (files: string) => Promise<void>): Promise<Staging> => {
  const scratch = await mkdtemp(join(parent, ".export-"))
  // The scratch directory is private; a directory in it has the default mode.
  const files = join(scratch, "files")
  await mkdir(join(files, "prompts"), { recursive: true })
  return { scratch, files, commit: () => commit(files) }
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
    throw new Error(`it already contains ${existing}/; remove it or choose another directory`)
  return makeStaging(directory, moveInto(directory))
}

/** Writes files into a directory that has no prompts: all of them or, on failure or interruption, none. */
export const writeDirectory = (directory: string, files: PromptFiles): Effect.Effect<void, CommandError> => {
  // No step is interruptible, so that nothing is written while the scratch directory is removed.
  const attempt = <A>(step: () => Promise<A>) =>
    Effect.uninterruptible(
      Effect.tryPromise({ try: step, catch: (error) => toCommandError(`cannot write ${directory}`, error) })
    )
  return Effect.acquireUseRelease(
    attempt(() => prepareStaging(directory)),
    (staging) =>
      Effect.gen(function* () {
        const texts = yield* attempt(async () => renderFiles(files))
        for (const [path, text] of texts) {
          yield* attempt(async () => {
            await mkdir(join(staging.files, dirname(path)), { recursive: true })
            await writeFile(join(staging.files, path), text, { flag: "wx" })
          })
        }
        yield* attempt(staging.commit)
      }),
    ({ scratch }) => Effect.promise(() => rm(scratch, { recursive: true, force: true }))
  )
}
