import { createHash } from "node:crypto"
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join, posix, relative, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Fault } from "../../application/Archive.ts"
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

/** A folder's name as a path; characters that some file system refuses are percent-encoded. */
const pathOfFolder = (name: string): string => {
  const encode = (segment: string): string =>
    segment.replace(/[%\\:*?"<>|\p{Cc}]|^\.|[. ]$/gu, (text) =>
      text.charCodeAt(0) < 0x80 ? percent(text) : encodeURIComponent(text)
    )
  return name.split("/").includes("")
    ? encode(name).replaceAll("/", "%2F")
    : name.split("/").map(encode).join("/")
}

/** A name for a file, after a title. */
const slugOf = (title: string): string =>
  title
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, 50)
    .replace(/^-|-$/g, "")
    .toWellFormed() || "untitled"

/** Gives paths that are all different, on file systems that ignore case too. */
const uniquePaths = () => {
  const taken = new Set<string>()
  return (directory: string, title: string, id: string): string => {
    const path = (suffix: string) => `${directory}/${slugOf(title)}${suffix}${extension}`
    const chosen = [path(""), path(`-${id.slice(0, 8)}`), path(`-${id}`)].find(
      (path) => !taken.has(path.toLowerCase())
    )!
    taken.add(chosen.toLowerCase())
    return chosen
  }
}

/** The files of a workspace's current state, with a path for each. */
export const layOut = (archive: FileSource): PromptFiles => {
  const unique = uniquePaths()
  return filesOf(archive, {
    prompt: ({ title, id }, folder) =>
      unique(folder === null ? "prompts" : `prompts/${pathOfFolder(folder)}`, title, id),
    fragment: ({ name, id }) => unique("fragments", name, id)
  })
}

/** The text of each file by its path. */
export const render = ({ prompts, fragments }: PromptFiles): ReadonlyMap<string, string> => {
  const names = new Map(fragments.map(({ id, path }) => [id, nameOf(path)]))
  const said = (file: PromptFile): PromptFront => ({
    id: file.id,
    title: file.title,
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
    const parsed = parseText(PromptFront, path, text)
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
        folder: folderOf(path),
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
    if (folder !== null && folder.length > 256)
      faults.push({ path, message: "its folder's name must be at most 256 characters" })
  }
  return faults.length > 0 ? Result.fail(BadFiles(faults)) : Result.succeed({ prompts, fragments })
}

const failure = (what: string, error: unknown) =>
  new CliFailure({ message: `${what}: ${error instanceof Error ? error.message : String(error)}` })

const textOf = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)

/** The texts of a directory's files by path, with slashes. What is hidden or no `.md` file is no prompt. */
const readTexts = async (
  directory: string
): Promise<Result.Result<ReadonlyMap<string, string>, BadFiles>> => {
  const top = await readdir(directory)
  if (!top.includes("prompts")) throw new Error("it has no directory prompts/")
  const texts = new Map<string, string>()
  const faults: Array<Fault> = []
  for (const part of ["prompts", "fragments"].filter((name) => top.includes(name))) {
    for (const entry of await readdir(join(directory, part), { recursive: true, withFileTypes: true })) {
      const path = relative(directory, join(entry.parentPath, entry.name)).split(sep).join("/")
      if (path.split("/").some((segment) => segment.startsWith("."))) continue
      if (entry.isSymbolicLink()) faults.push({ path, message: "is a symbolic link, which is not followed" })
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

const writeTexts = async (directory: string, texts: ReadonlyMap<string, string>): Promise<void> => {
  await mkdir(directory, { recursive: true })
  const taken = (await readdir(directory)).filter((name) => ["prompts", "fragments"].includes(name))
  if (taken.length > 0) throw new Error(`it has a ${taken[0]}/ already; remove it, or give another directory`)
  await mkdir(join(directory, "prompts"))
  for (const [path, text] of texts) {
    await mkdir(join(directory, dirname(path)), { recursive: true })
    await writeFile(join(directory, path), text, { flag: "wx" })
  }
}

/** Writes files into a directory that has no prompts yet. */
export const writeDirectory = (directory: string, files: PromptFiles): Effect.Effect<void, CliFailure> =>
  Effect.tryPromise({
    try: () => writeTexts(directory, render(files)),
    catch: (error) => failure(`can't write ${directory}`, error)
  })
