import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import {
  checkFiles,
  compareInterfaces,
  type PromptInterface
} from "../../../../application/transfer/CallerChanges.ts"
import { InvalidFiles, type Texts } from "../../../../application/transfer/PromptFile.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { describeChange, listCallerChanges, renderDiff } from "../output/ChangeText.ts"
import { CommandError, UsageError } from "../output/CommandError.ts"
import { makeTable, pluralize, print, printExported, printWarnings, toPrintable } from "../output/Output.ts"
import { administerWorkspace } from "../WithDatabase.ts"
import { readTexts, requireNoFiles, updateDirectory } from "./PromptDirectory.ts"

// The commands for a directory of prompts: import, export and check.

export interface ImportOptions {
  readonly path: string
  readonly dryRun: boolean
  readonly overwrite: boolean
  readonly allowEmpty: boolean
}

const summarizeChanges = (count: number, dryRun: boolean, workspace: WorkspaceId): string => {
  if (count === 0) return `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace}`
  return `${pluralize(count, "change")} ${dryRun ? "would be made" : "made"} in workspace ${workspace}`
}

/**
 * Imports a directory of prompts and prints the result. In a dry run, each change is followed by its diff, unless the
 * diff is empty. Returns true if anything changes, or would change without the dry run.
 */
export const importFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  { path, dryRun, overwrite, allowEmpty }: ImportOptions
) {
  const texts = yield* readTexts(path, true)
  if (!allowEmpty && ![...texts.keys()].some((path) => path.startsWith("prompts/")))
    return yield* new CommandError({
      message: `${path} has no prompts, so the import would archive all prompts of the workspace: add --allow-empty`
    })
  const imported = yield* administration.importFiles(workspace, texts, { dryRun, overwrite, source: path })
  const { fragmentNames, warnings, callerChanges } = imported
  const changes = imported.changes.map(({ before, after, ...change }) => ({
    change,
    diff: dryRun ? renderDiff({ ...change, before, after }, texts, fragmentNames) : ""
  }))
  yield* printWarnings(warnings)
  yield* print(
    {
      workspace_id: workspace,
      dry_run: dryRun,
      changes: changes.map(({ change, diff }) => (dryRun ? { ...change, diff } : change)),
      ...(dryRun ? { caller_changes: callerChanges } : {}),
      warnings
    },
    [
      ...changes.flatMap(({ change, diff }) =>
        diff === "" ? [describeChange(change)] : [describeChange(change), diff, ""]
      ),
      ...listCallerChanges(callerChanges),
      summarizeChanges(changes.length, dryRun, workspace)
    ].join("\n")
  )
  return changes.length > 0
})

/**
 * Exports a workspace into a directory, as one file per prompt and one file per fragment. Without `update`, the directory
 * must have no files.
 */
export const exportFiles = Effect.fnUntraced(function* (
  workspace: string,
  out: string,
  { update, overwrite }: Readonly<Record<"update" | "overwrite", boolean>>
) {
  const exported = yield* administerWorkspace(
    workspace,
    Effect.fnUntraced(function* (administration, workspace_id) {
      if (!update) yield* requireNoFiles(out)
      const texts: Texts = update ? yield* readTexts(out, false) : new Map()
      const { textsToWrite, pathsToRemove } = yield* administration.exportFiles(workspace_id, texts, {
        overwrite
      })
      yield* updateDirectory(out, textsToWrite, pathsToRemove)
      return { workspace_id, written: [...textsToWrite.keys()], removed: pathsToRemove }
    })
  )
  const { workspace_id, written, removed } = exported
  if (!update) return yield* printExported(workspace_id, out)
  const count = written.length + removed.length
  const lines = [
    ...written.map((path) => toPrintable(`written: ${path}`)),
    ...removed.map((path) => toPrintable(`removed: ${path}`)),
    `${count === 0 ? "Nothing" : pluralize(count, "file")} changed in ${out}`
  ]
  yield* print({ workspace_id, out: resolve(out), written, removed }, lines.join("\n"))
})

const formatPrompts = makeTable<PromptInterface>({
  NAME: "name",
  TYPE: "type",
  SLOTS: ({ slots }) => slots.join(", ") || "-",
  FILE: "path"
})

/** Checks the earlier state, which may have no prompts. The paths of its problems begin with `against`. */
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
 * Checks a directory of prompts, and prints its prompts and the changes since the state of the directory `against` that
 * can break applications. Returns true if there are such changes.
 */
export const checkDirectory = Effect.fnUntraced(function* (directory: string, against: string | undefined) {
  const { prompts, warnings } = yield* Effect.fromResult(checkFiles(yield* readTexts(directory, true)))
  const earlier = against === undefined ? [] : (yield* checkEarlier(against)).prompts
  const changes = compareInterfaces(earlier, prompts)
  yield* printWarnings(warnings)
  yield* print(
    { prompts: prompts.map(({ id: _, ...prompt }) => prompt), caller_changes: changes, warnings },
    [formatPrompts(prompts), ...listCallerChanges(changes)].join("\n")
  )
  return changes.length > 0
})
