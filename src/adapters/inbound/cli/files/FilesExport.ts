import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { CommandError } from "../output/CommandError.ts"
import { pluralize, print, printExported, toPrintable } from "../output/Output.ts"
import { withProgress } from "../output/Progress.ts"
import { administerWorkspace } from "../WithDatabase.ts"
import { planUpdate } from "../../../../application/transfer/DirectoryUpdate.ts"
import { readTexts, requireNoFiles, updateDirectory } from "./PromptDirectory.ts"

export interface DirectoryExportOptions {
  readonly out: string
  /** Brings the edits of the workspace into an existing directory, and records that the directory contains them. */
  readonly update: boolean
  readonly overwrite: boolean
  readonly json: boolean
}

/** Writes a workspace into a directory. Returns the paths of the written, removed and pending files. */
const exportFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  { out, update, overwrite }: DirectoryExportOptions
) {
  const content = yield* administration.readContent(workspace).pipe(withProgress("Exporting"))
  if (!update) yield* requireNoFiles(out)
  const texts = update ? yield* readTexts(out, false) : new Map<string, string>()
  const { files, textsToWrite, pathsToRemove, pending, conflicts } = yield* Effect.fromResult(
    planUpdate(workspace, content, texts)
  )
  if (conflicts.length > 0 && !overwrite)
    return yield* new CommandError({
      message: [
        "nothing was written; these files and their prompts in the workspace were both changed since the latest import:",
        ...conflicts.map(toPrintable),
        "Replace the files with export --overwrite, or the prompts with import --overwrite."
      ].join("\n")
    })
  yield* updateDirectory(out, textsToWrite, pathsToRemove)
  if (update) yield* administration.recordFiles(workspace, files)
  return { workspace_id: workspace, written: [...textsToWrite.keys()], removed: pathsToRemove, pending }
})

const describeUpdate = (
  out: string,
  { written, removed, pending }: Effect.Success<ReturnType<typeof exportFiles>>
): string =>
  [
    ...written.map((path) => toPrintable(`written: ${path}`)),
    ...removed.map((path) => toPrintable(`removed: ${path}`)),
    ...pending.map((path) => toPrintable(`not imported yet: ${path}`)),
    written.length + removed.length === 0
      ? `Nothing changed in ${out}`
      : `${pluralize(written.length + removed.length, "file")} changed in ${out}`
  ].join("\n")

/** Exports a workspace into a directory, as one file per prompt and one file per fragment. */
export const runFilesExport = Effect.fnUntraced(function* (
  workspace: string,
  options: DirectoryExportOptions
) {
  const { out, update, json } = options
  const exported = yield* administerWorkspace(workspace, (administration, id) =>
    exportFiles(administration, id, options)
  )
  const { workspace_id, ...changes } = exported
  yield* update
    ? print(json, { workspace_id, out: resolve(out), ...changes }, describeUpdate(out, exported))
    : printExported(workspace_id, out, json)
})
