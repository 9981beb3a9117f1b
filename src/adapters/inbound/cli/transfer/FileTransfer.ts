import { constants, isUtf8 } from "node:buffer"
import { unlink } from "node:fs/promises"
import { dirname, join, posix, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
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

// The commands for a directory of prompts: import, export and check.

/** Returns the existing entries `prompts/` and `fragments/` of a directory. */
const listParts = Effect.fnUntraced(function* (directory: string) {
  const entries = yield* (yield* FileSystem.FileSystem).readDirectoryEntries(directory)
  return entries.filter(({ name }) => name === "prompts" || name === "fragments")
})

/** Returns the entries that `listParts` returns, or an empty list if the directory is missing. */
const listExistingParts = (directory: string) =>
  Effect.catchReason(listParts(directory), "PlatformError", "NotFound", () => Effect.succeed([]))

/**
 * Reads the `.md` files below `prompts/` and `fragments/` of a directory, and returns their texts by path. Ignores
 * hidden files and directories, files with other extensions, and everything else in the directory. Fails for a file
 * that is not UTF-8 and for a symbolic link.
 *
 * @param mustHavePrompts true if the read fails when the directory or its `prompts/` is missing
 */
export const readTexts = Effect.fnUntraced(function* (directory: string, mustHavePrompts: boolean) {
  const fileSystem = yield* FileSystem.FileSystem
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  const texts = new Map<string, string>()
  const problems: Array<Problem> = []
  const readEntries: (
    parent: string,
    entries: ReadonlyArray<FileSystem.DirectoryEntry>
  ) => Effect.Effect<void, PlatformError> = Effect.fnUntraced(function* (parent, entries) {
    for (const { name, type } of entries) {
      const path = posix.join(parent, name)
      if (name.startsWith(".")) continue
      if (type === "Directory")
        yield* readEntries(path, yield* fileSystem.readDirectoryEntries(join(directory, path)))
      else if (type === "SymbolicLink")
        problems.push({ path, message: "is a symbolic link, which is not followed" })
      else if (parent === "") problems.push({ path, message: "is not a directory" })
      else if (type === "File" && path.endsWith(extension)) {
        const bytes = yield* fileSystem.readFile(join(directory, path))
        if (bytes.length > constants.MAX_STRING_LENGTH) problems.push({ path, message: "is too large" })
        else if (isUtf8(bytes)) texts.set(path, decoder.decode(bytes))
        else problems.push({ path, message: "is not UTF-8" })
      }
    }
  })
  const toError = (error: PlatformError) => makeReadError(directory, error)
  const parts = yield* Effect.mapError((mustHavePrompts ? listParts : listExistingParts)(directory), toError)
  if (mustHavePrompts && !parts.some(({ name }) => name === "prompts"))
    return yield* makeReadError(directory, "it has no prompts/ directory")
  yield* Effect.mapError(readEntries("", parts), toError)
  return problems.length > 0 ? yield* new InvalidFiles(problems) : (texts as Texts)
})

/**
 * Writes and removes files of a directory. Creates a missing directory. Changes nothing if one of the paths to write
 * cannot be a file. Keeps directories that become empty. An interruption waits until all files are written, so that no
 * file is missing.
 */
export const updateDirectory = Effect.fnUntraced(
  function* (directory: string, textsToWrite: Texts, pathsToRemove: ReadonlyArray<string>) {
    const fileSystem = yield* FileSystem.FileSystem
    for (const path of textsToWrite.keys()) {
      const file = join(directory, path)
      const existing = yield* Effect.catchReason(
        fileSystem.stat(file),
        "PlatformError",
        "NotFound",
        () => Effect.undefined
      )
      if (existing?.type === "Directory") return yield* Effect.fail(`${file} is a directory`)
    }
    yield* fileSystem.makeDirectory(join(directory, "prompts"), { recursive: true })
    for (const [path, text] of textsToWrite) {
      yield* fileSystem.makeDirectory(join(directory, dirname(path)), { recursive: true })
      yield* fileSystem.writeFileString(join(directory, path), text)
    }
    // The error of `FileSystem.remove` for a missing file names `lstat` instead of `unlink`.
    for (const path of pathsToRemove)
      yield* Effect.tryPromise({ try: () => unlink(join(directory, path)), catch: (error) => error })
  },
  (update, directory) =>
    Effect.uninterruptible(Effect.mapError(update, (error) => makeWriteError(directory, error)))
)

/** Fails if a directory contains `prompts/` or `fragments/`. */
export const requireNoFiles = Effect.fnUntraced(function* (directory: string) {
  const [existing] = yield* Effect.mapError(listExistingParts(directory), (error) =>
    makeWriteError(directory, error)
  )
  if (existing !== undefined)
    return yield* makeWriteError(
      directory,
      `it already contains ${existing.name}/; add --update to update it, or choose another directory`
    )
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

/**
 * Checks the directory `against`, even if the directory has no prompts. The path of each problem begins with `against`.
 */
const checkEarlier = Effect.fnUntraced(function* (against: string) {
  const fileSystem = yield* FileSystem.FileSystem
  if (!(yield* Effect.orElseSucceed(fileSystem.exists(against), () => false)))
    return yield* new UsageError({ message: `the directory of --against does not exist: ${against}` })
  return yield* readTexts(against, false).pipe(
    Effect.flatMap((texts) => Effect.fromResult(checkFiles(texts))),
    Effect.catchTag("InvalidFiles", ({ problems, count }) => {
      const located = problems.map(({ path, message }) => ({ path: join(against, path), message }))
      return Effect.fail(new InvalidFiles(located, count))
    })
  )
})

/**
 * Checks a directory of prompts and prints the prompts. If `against` is given, compares the prompts with the prompts of
 * the directory `against`, and prints the changes that can break applications. Returns true if at least one change can
 * break applications.
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
