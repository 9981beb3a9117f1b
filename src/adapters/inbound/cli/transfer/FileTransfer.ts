import { isUtf8 } from "node:buffer"
import { type Dirent, existsSync } from "node:fs"
import { mkdir, readdir, readFile, stat, unlink, writeFile } from "node:fs/promises"
import { dirname, join, posix, resolve } from "node:path"
import * as Effect from "effect/Effect"
import {
  checkFiles,
  compareInterfaces,
  type PromptInterface
} from "../../../../application/transfer/BreakingChanges.ts"
import type { FileChange } from "../../../../application/transfer/FileImport.ts"
import { extension, InvalidFiles, type Texts } from "../../../../application/transfer/PromptFile.ts"
import type { Problem } from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { openWorkspace } from "../OpenDatabase.ts"
import { listBreakingChanges, renderDiff } from "../output/ChangeText.ts"
import { CommandError, makeReadError, makeWriteError, UsageError } from "../output/CommandError.ts"
import {
  makeTableFormatter,
  pluralize,
  print,
  printExported,
  printWarnings,
  toPrintable
} from "../output/Output.ts"
import { ignoreMissing } from "../output/OutputFile.ts"

// The commands for a directory of prompts: import, export and check.

const listEntries = (directory: string): Promise<ReadonlyArray<Dirent>> =>
  readdir(directory, { withFileTypes: true })

/** Lists `prompts/` and `fragments/`, if they exist. */
const listParts = async (directory: string): Promise<ReadonlyArray<Dirent>> =>
  (await listEntries(directory)).filter(({ name }) => name === "prompts" || name === "fragments")

/** Lists `prompts/` and `fragments/`, if they exist. If the directory is missing, the list is empty. */
const listExistingParts = async (directory: string): Promise<ReadonlyArray<Dirent>> =>
  (await listParts(directory).catch(ignoreMissing)) ?? []

/**
 * Reads the `.md` files below `prompts/` and `fragments/` of a directory, and returns their texts by path. Ignores
 * hidden files and directories, files with other extensions, and everything else in the directory. Fails for a file
 * that is not UTF-8 and for a symbolic link.
 *
 * @param mustHavePrompts true if the read fails for a directory that does not exist or has no `prompts/`
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
      const parts = await (mustHavePrompts ? listParts : listExistingParts)(directory)
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
 * Writes and removes files of a directory. Creates a missing directory. Changes nothing if one of the paths to write
 * cannot be a file. Keeps directories that become empty. An interruption waits until all files are written, so that no
 * file is missing.
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
      const [existing] = await listExistingParts(directory)
      if (existing !== undefined)
        throw new Error(
          `it already contains ${existing.name}/; add --update to update it, or choose another directory`
        )
    },
    catch: (error) => makeWriteError(directory, error)
  })

export interface ImportOptions {
  readonly path: string
  readonly dryRun: boolean
  readonly overwrite: boolean
  readonly allowEmpty: boolean
}

export const describeChange = ({ kind, id, path, name, change }: Omit<FileChange, "before" | "after">) =>
  toPrintable(`${change}: ${kind} ${path ?? id} (${name})`)

const summarizeChanges = (count: number, dryRun: boolean, workspace: WorkspaceId): string => {
  if (count === 0) return `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace}`
  return `${pluralize(count, "change")} ${dryRun ? "would be made" : "made"} in workspace ${workspace}`
}

/**
 * Imports a directory of prompts and prints the result. In a dry run, prints the diff of each change, unless the diff
 * is empty. Returns true if anything changes or, in a dry run, would change.
 */
export const importFiles = Effect.fnUntraced(function* (
  workspace: string,
  { path, dryRun, overwrite, allowEmpty }: ImportOptions
) {
  const { id, texts, imported } = yield* Effect.scoped(
    Effect.gen(function* () {
      const { importFiles, id } = yield* openWorkspace(workspace, !dryRun)
      const texts = yield* readTexts(path, true)
      if (!allowEmpty && ![...texts.keys()].some((path) => path.startsWith("prompts/")))
        return yield* new CommandError({
          message: `${path} has no prompts, so the import would archive all prompts of the workspace: add --allow-empty`
        })
      return { id, texts, imported: yield* importFiles(id, texts, { dryRun, overwrite, source: path }) }
    })
  )
  const { fragmentNames, warnings, breakingChanges } = imported
  const changes = imported.changes.map(({ before, after, ...change }) => ({
    change,
    diff: dryRun ? renderDiff({ ...change, before, after }, texts, fragmentNames) : ""
  }))
  yield* printWarnings(warnings)
  yield* print(
    {
      workspace_id: id,
      dry_run: dryRun,
      changes: changes.map(({ change, diff }) => (dryRun ? { ...change, diff } : change)),
      ...(dryRun ? { caller_changes: breakingChanges } : {}),
      warnings
    },
    [
      ...changes.flatMap(({ change, diff }) =>
        diff === "" ? [describeChange(change)] : [describeChange(change), diff, ""]
      ),
      ...listBreakingChanges(breakingChanges),
      summarizeChanges(changes.length, dryRun, id)
    ].join("\n")
  )
  return changes.length > 0
})

/** Exports a workspace to a directory. Without `update`, the directory must not have `prompts/` or `fragments/`. */
export const exportFiles = Effect.fnUntraced(function* (
  workspace: string,
  out: string,
  { update, overwrite }: Readonly<Record<"update" | "overwrite", boolean>>
) {
  const { id, textsToWrite, removed } = yield* Effect.scoped(
    Effect.gen(function* () {
      const { exportFiles, id } = yield* openWorkspace(workspace)
      if (!update) yield* requireNoFiles(out)
      const texts: Texts = update ? yield* readTexts(out, false) : new Map()
      const { textsToWrite, pathsToRemove } = yield* exportFiles(id, texts, { overwrite })
      yield* updateDirectory(out, textsToWrite, pathsToRemove)
      return { id, textsToWrite, removed: pathsToRemove }
    })
  )
  if (!update) return yield* printExported(id, out)
  const written = [...textsToWrite.keys()]
  const count = written.length + removed.length
  const lines = [
    ...written.map((path) => toPrintable(`written: ${path}`)),
    ...removed.map((path) => toPrintable(`removed: ${path}`)),
    `${count === 0 ? "Nothing" : pluralize(count, "file")} changed in ${out}`
  ]
  yield* print({ workspace_id: id, out: resolve(out), written, removed }, lines.join("\n"))
})

const formatPrompts = makeTableFormatter<PromptInterface>({
  NAME: "name",
  TYPE: "type",
  SLOTS: ({ slots }) => slots.join(", ") || "-",
  FILE: "path"
})

/** Checks the directory `against`, which may have no prompts. The path of each problem begins with `against`. */
const checkEarlier = Effect.fnUntraced(function* (against: string) {
  if (!existsSync(against))
    return yield* new UsageError({ message: `the directory of --against does not exist: ${against}` })
  return yield* readTexts(against, false).pipe(
    Effect.flatMap((texts) => Effect.fromResult(checkFiles(texts))),
    Effect.catchTag("InvalidFiles", ({ problems, count }) => {
      const located = problems.map(({ path, message }) => ({ path: join(against, path), message }))
      return Effect.fail(InvalidFiles(located, count))
    })
  )
})

/**
 * Checks a directory of prompts and prints the prompts. If `against` is given, compares the prompts with the prompts of
 * this directory, and prints the changes that can break applications. Returns true if there are such changes.
 */
export const checkDirectory = Effect.fnUntraced(function* (directory: string, against: string | undefined) {
  const { prompts, warnings } = yield* Effect.fromResult(checkFiles(yield* readTexts(directory, true)))
  const earlier = against === undefined ? [] : (yield* checkEarlier(against)).prompts
  const changes = compareInterfaces(earlier, prompts)
  yield* printWarnings(warnings)
  yield* print(
    { prompts: prompts.map(({ id: _, ...prompt }) => prompt), caller_changes: changes, warnings },
    [formatPrompts(prompts), ...listBreakingChanges(changes)].join("\n")
  )
  return changes.length > 0
})
