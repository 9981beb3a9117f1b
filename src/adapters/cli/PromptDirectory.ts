import { createHash } from "node:crypto"
import { lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join, posix, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ArchivePrompt, type Fault } from "../../application/Archive.ts"
import {
  BadFiles,
  type FileSource,
  type FragmentFile,
  filesOf,
  type PromptFile,
  type PromptFiles
} from "../../application/PromptFiles.ts"
import type { PromptId, WorkspaceId } from "../../domain/Prompt.ts"
import { CliFailure } from "./CliFailure.ts"
import { FragmentFront, PromptFront, parseText, renderText } from "./PromptText.ts"

const extension = ".md"

/** The front matter of a prompt's file. `folder` is for names that a path can't hold. */
const PromptFileFront = Schema.Struct({
  ...PromptFront.fields,
  folder: Schema.optionalKey(ArchivePrompt.fields.title)
})
type PromptFileFront = typeof PromptFileFront.Type

/** The id of a file that names none: the same for the same path in the same workspace (a UUID of version 5). */
const idOf = (workspace: WorkspaceId, path: string): string => {
  const namespace = Buffer.from(workspace.replaceAll("-", ""), "hex")
  const bytes = createHash("sha1").update(namespace).update(path).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString("hex")
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")
}

/** What a path within `prompts/` or `fragments/` calls a file, as front matter refers to it. */
const nameOf = (path: string): string => path.slice(path.indexOf("/") + 1, -extension.length)

const decodeSegment = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** The folder that a prompt's path says. */
const folderOf = (path: string): string | null => {
  const directory = posix.dirname(path).split("/").slice(1)
  return directory.length === 0 ? null : directory.map(decodeSegment).join("/")
}

const percent = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`

/** The longest name that file systems take, in bytes. */
const maxSegmentBytes = 255

/** Cuts a name that is too long for a file system; a hash keeps it apart from names with the same beginning. */
const shorten = (segment: string): string => {
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

/** A folder's name as a path; characters that some file system refuses are percent-encoded. */
const pathOfFolder = (name: string): string => {
  const encode = (segment: string): string =>
    segment.replace(/[%\\:*?"<>|\p{Cc}]|^\.|[. ]$/gu, (text) =>
      text.charCodeAt(0) < 0x80 ? percent(text) : encodeURIComponent(text)
    )
  return name.split("/").includes("")
    ? shorten(encode(name).replaceAll("/", "%2F"))
    : name
        .split("/")
        .map((segment) => shorten(encode(segment)))
        .join("/")
}

/** The directory of a folder's prompts. */
const directoryOf = (folder: string | null): string =>
  folder === null || folder === "" ? "prompts" : `prompts/${pathOfFolder(folder)}`

/** A directory and all that it is in. */
const ancestorsOf = (directory: string): ReadonlyArray<string> =>
  directory.split("/").map((_, index, segments) => segments.slice(0, index + 1).join("/"))

/** What a file system that ignores case takes a path for. */
const foldCase = (path: string): string => path.normalize("NFC").toLowerCase()

/** A name for a file, after a title. */
const slugOf = (title: string): string =>
  title
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, 50)
    .replace(/^-|-$/g, "")
    .toWellFormed() || "untitled"

/** Suffixes that tell files with the same slug apart. */
const suffixesOf = function* (id: string): Generator<string> {
  yield* ["", `-${id.slice(0, 8)}`, `-${id}`]
  for (let count = 2; ; count++) yield `-${id}-${count}`
}

/** Gives paths that differ from each other and from the directories, on file systems that ignore case too. */
const uniquePaths = (directories: Iterable<string>) => {
  const taken = new Set([...directories].flatMap(ancestorsOf).map(foldCase))
  return (directory: string, title: string, id: string): string => {
    for (const suffix of suffixesOf(id)) {
      const path = `${directory}/${slugOf(title)}${suffix}${extension}`
      if (taken.has(foldCase(path))) continue
      taken.add(foldCase(path))
      return path
    }
    throw new Error("unreachable: suffixes never end")
  }
}

/** The files of a workspace's current state, with a path for each. */
export const layOut = (archive: FileSource): PromptFiles => {
  const used = new Set(
    archive.prompts.filter((prompt) => !prompt.is_archived).map((prompt) => prompt.folder_id)
  )
  const folders = archive.folders.filter(({ id }) => used.has(id))
  const unique = uniquePaths(folders.map(({ name }) => directoryOf(name)))
  return filesOf(archive, {
    prompt: ({ title, id }, folder) => unique(directoryOf(folder), title, id),
    fragment: ({ name, id }) => unique("fragments", name, id)
  })
}

/** Whether a prompt's path alone gives its folder, on file systems that ignore case too. */
const makeIsTold = (prompts: ReadonlyArray<PromptFile>) => {
  const spellings = new Map<string, string>()
  const ambiguous = new Set<string>()
  for (const directory of new Set(prompts.map(({ path }) => posix.dirname(path)))) {
    for (const ancestor of ancestorsOf(directory)) {
      const key = foldCase(ancestor)
      if ((spellings.get(key) ?? ancestor) !== ancestor) ambiguous.add(key)
      spellings.set(key, ancestor)
    }
  }
  return ({ path, folder }: PromptFile): boolean =>
    folderOf(path) === folder &&
    !ancestorsOf(posix.dirname(path)).some((ancestor) => ambiguous.has(foldCase(ancestor)))
}

/** The text of each file by its path. */
export const render = ({ prompts, fragments }: PromptFiles): ReadonlyMap<string, string> => {
  const names = new Map(fragments.map(({ id, path }) => [id, nameOf(path)]))
  const isTold = makeIsTold(prompts)
  const said = (file: PromptFile): PromptFileFront => ({
    id: file.id,
    title: file.title,
    ...(file.folder === null || isTold(file) ? {} : { folder: file.folder }),
    ...(file.description === "" ? {} : { description: file.description }),
    type: file.prompt_type,
    ...(file.target_model === "" ? {} : { model: file.target_model }),
    ...(file.intent === "" ? {} : { intent: file.intent }),
    ...(file.tags.length === 0 ? {} : { tags: file.tags }),
    ...(file.is_favorite ? { favorite: true } : {}),
    ...(file.sort_order === 0 ? {} : { sort_order: file.sort_order }),
    ...(file.fragments.length === 0
      ? {}
      : {
          fragments: file.fragments.map(({ fragment_id, variable_overrides }) => ({
            fragment: names.get(fragment_id)!,
            ...(Object.keys(variable_overrides).length === 0 ? {} : { with: variable_overrides })
          }))
        })
  })
  return new Map([
    ...fragments.map(({ path, id, name, content }) => [path, renderText({ id, name }, content)] as const),
    ...prompts.map((file) => [file.path, renderText(said(file), file.current_content)] as const)
  ])
}

/** Reads files of a workspace from their texts by path; every fault of every file is told. */
export const parse = (
  workspace: WorkspaceId,
  texts: ReadonlyMap<string, string>
): Result.Result<PromptFiles, BadFiles> => {
  const faults: Array<Fault> = []
  const inDirectory = (directory: string) =>
    [...texts].filter(([path]) => path.startsWith(`${directory}/`)).sort(([a], [b]) => (a < b ? -1 : 1))

  const fragments = inDirectory("fragments").flatMap(([path, text]): Array<FragmentFile> => {
    const parsed = parseText(FragmentFront, path, text)
    if (Result.isFailure(parsed)) {
      faults.push(...parsed.failure)
      return []
    }
    const { front, body } = parsed.success
    const id = front.id ?? idOf(workspace, path)
    return [{ path, id, name: front.name ?? posix.basename(path, extension), content: body }]
  })
  const fragmentPaths = new Set(inDirectory("fragments").map(([path]) => nameOf(path)))
  const fragmentIds = new Map(fragments.map(({ path, id }) => [nameOf(path), id]))

  const prompts = inDirectory("prompts").flatMap(([path, text]): Array<PromptFile> => {
    const parsed = parseText(PromptFileFront, path, text)
    if (Result.isFailure(parsed)) {
      faults.push(...parsed.failure)
      return []
    }
    const { front, body } = parsed.success
    const uses = front.fragments ?? []
    for (const { fragment } of uses) {
      if (!fragmentPaths.has(fragment))
        faults.push({ path, message: `fragments: there is no file fragments/${fragment}${extension}` })
    }
    return [
      {
        path,
        folder: front.folder ?? folderOf(path),
        id: front.id ?? (idOf(workspace, path) as PromptId),
        title: front.title ?? posix.basename(path, extension),
        description: front.description ?? "",
        current_content: body,
        prompt_type: front.type ?? "user",
        target_model: front.model ?? "",
        intent: front.intent ?? "",
        is_favorite: front.favorite ?? false,
        sort_order: front.sort_order ?? 0,
        tags: front.tags ?? [],
        fragments: uses.map((use) => ({
          fragment_id: fragmentIds.get(use.fragment)!,
          variable_overrides: use.with ?? {}
        }))
      }
    ]
  })
  for (const { path, folder } of prompts) {
    if (folder !== null && [...folder].length > 256)
      faults.push({ path, message: "its folder's name must be at most 256 characters" })
  }
  return faults.length > 0 ? Result.fail(BadFiles(faults)) : Result.succeed({ prompts, fragments })
}

const failure = (what: string, error: unknown) =>
  new CliFailure({ message: `${what}: ${error instanceof Error ? error.message : String(error)}` })

const textOf = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)

const isLink = "is a symbolic link, which is not followed"

/** The texts of a directory's files by path, with slashes. What is hidden or no `.md` file is no prompt. */
const readTexts = async (
  directory: string
): Promise<Result.Result<ReadonlyMap<string, string>, BadFiles>> => {
  const top = await readdir(directory)
  if (!top.includes("prompts")) throw new Error("it has no directory prompts/")
  const texts = new Map<string, string>()
  const faults: Array<Fault> = []
  for (const part of ["prompts", "fragments"].filter((name) => top.includes(name))) {
    if ((await lstat(join(directory, part))).isSymbolicLink()) {
      faults.push({ path: part, message: isLink })
      continue
    }
    for (const entry of await readdir(join(directory, part), { recursive: true, withFileTypes: true })) {
      const path = relative(directory, join(entry.parentPath, entry.name)).split(sep).join("/")
      if (path.split("/").some((segment) => segment.startsWith("."))) continue
      if (entry.isSymbolicLink()) faults.push({ path, message: isLink })
      if (!entry.isFile() || !path.endsWith(extension)) continue
      const bytes = await readFile(join(directory, path))
      try {
        texts.set(path, textOf(bytes))
      } catch {
        faults.push({ path, message: "is not UTF-8" })
      }
    }
  }
  return faults.length > 0 ? Result.fail(BadFiles(faults)) : Result.succeed(texts)
}

/** Reads a directory of prompts for a workspace. */
export const readDirectory = (
  directory: string,
  workspace: WorkspaceId
): Effect.Effect<PromptFiles, BadFiles | CliFailure> =>
  Effect.tryPromise({
    try: () => readTexts(directory),
    catch: (error) => failure(`can't read ${directory}`, error)
  }).pipe(
    Effect.flatMap((texts) => Effect.fromResult(Result.flatMap(texts, (texts) => parse(workspace, texts))))
  )

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

/** Where the files are written first, and how they all get to where they belong. */
interface Staging {
  readonly scratch: string
  readonly files: string
  readonly commit: () => Promise<void>
}

const makeStaging = async (parent: string, commit: (files: string) => Promise<void>): Promise<Staging> => {
  const scratch = await mkdtemp(join(parent, ".export-"))
  // Unlike the scratch directory, it has the usual permissions.
  const files = join(scratch, "files")
  await mkdir(join(files, "prompts"), { recursive: true })
  return { scratch, files, commit: () => commit(files) }
}

/** Into a directory that exists: `prompts/` comes last, for without it an import refuses the directory. */
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

const prepare = async (directory: string): Promise<Staging> => {
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
  const taken = (await readdir(directory)).filter((name) => ["prompts", "fragments"].includes(name))
  if (taken.length > 0) throw new Error(`it has a ${taken[0]}/ already; remove it, or give another directory`)
  return makeStaging(directory, moveInto(directory))
}

/** Writes files into a directory that has no prompts yet: all of them or, on failure or interruption, none. */
export const writeDirectory = (directory: string, files: PromptFiles): Effect.Effect<void, CliFailure> => {
  // Each step runs to its end, so that nothing is written while the scratch directory is being removed.
  const attempt = <A>(step: () => Promise<A>) =>
    Effect.uninterruptible(
      Effect.tryPromise({ try: step, catch: (error) => failure(`can't write ${directory}`, error) })
    )
  return Effect.acquireUseRelease(
    attempt(() => prepare(directory)),
    (staging) =>
      Effect.gen(function* () {
        const texts = yield* attempt(async () => render(files))
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
