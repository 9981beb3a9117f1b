import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { FileImport } from "../../../../application/transfer/FileImport.ts"
import type { Texts } from "../../../../application/transfer/PromptFile.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { describeChange, listCallerChanges, renderDiff } from "../output/ChangeText.ts"
import { CommandError } from "../output/CommandError.ts"
import { pluralize, print, printWarnings } from "../output/Output.ts"
import { readTexts } from "./PromptDirectory.ts"

export interface DirectoryImportOptions {
  readonly path: string
  readonly dryRun: boolean
  readonly json: boolean
  readonly overwrite: boolean
  readonly allowEmpty: boolean
}

const summarizeChanges = (count: number, dryRun: boolean, workspace: WorkspaceId): string => {
  if (count === 0) return `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace}`
  return `${pluralize(count, "change")} ${dryRun ? "would be made" : "made"} in workspace ${workspace}`
}

/** Lists the changes. In a dry run, each change is followed by its diff, unless the diff is empty. */
const listChanges = (
  { changes, fragmentNames }: FileImport,
  texts: Texts,
  dryRun: boolean
): ReadonlyArray<string> =>
  changes.flatMap((change) => {
    const diff = dryRun ? renderDiff(change, texts, fragmentNames) : ""
    return diff === "" ? [describeChange(change)] : [describeChange(change), diff, ""]
  })

const toJsonChanges = ({ changes, fragmentNames }: FileImport, texts: Texts, dryRun: boolean) =>
  changes.map((change) => {
    const { before: _, after: __, ...summary } = change
    return dryRun ? { ...summary, diff: renderDiff(change, texts, fragmentNames) } : summary
  })

/**
 * Imports a directory of prompts and prints the result. Returns true if the import changes anything, or would change
 * anything without the dry run.
 */
export const importFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  { path, dryRun, overwrite, allowEmpty, json }: DirectoryImportOptions
) {
  const texts = yield* readTexts(path, true)
  if (!allowEmpty && ![...texts.keys()].some((path) => path.startsWith("prompts/")))
    return yield* new CommandError({
      message: `${path} has no prompts, so the import would archive all prompts of the workspace: add --allow-empty`
    })
  const imported = yield* administration.importFiles(workspace, texts, { dryRun, overwrite, source: path })
  const { changes, warnings, callerChanges } = imported
  if (!json) yield* printWarnings(warnings)
  yield* print(
    json,
    {
      workspace_id: workspace,
      dry_run: dryRun,
      changes: toJsonChanges(imported, texts, dryRun),
      ...(dryRun ? { caller_changes: callerChanges } : {}),
      warnings
    },
    [
      ...listChanges(imported, texts, dryRun),
      ...listCallerChanges(callerChanges),
      summarizeChanges(changes.length, dryRun, workspace)
    ].join("\n")
  )
  return changes.length > 0
})
