import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { CommandError } from "../output/CommandError.ts"
import { planUpdate } from "./DirectoryUpdate.ts"
import { listProblems } from "../output/Errors.ts"
import { pluralize, print, printExported, toPrintable } from "../output/Output.ts"
import { administerWorkspace } from "../WithDatabase.ts"
import { withElapsedTime } from "../output/Progress.ts"
import { readTexts, updateDirectory, writeDirectory } from "./PromptDirectory.ts"
import { assignPaths } from "./PromptPaths.ts"
import { renderFiles } from "./PromptText.ts"

const readContent = (administration: Administration["Service"], workspace: WorkspaceId) =>
  administration.readContent(workspace).pipe(withElapsedTime("Exporting"))

/**
 * Brings the edits of a workspace into a directory, and records that the directory contains them. Returns the paths of the files
 * that were written and removed, and of those whose changes were not imported yet.
 */
const updateFiles = Effect.fnUntraced(
  function* (
    administration: Administration["Service"],
    workspace: WorkspaceId,
    directory: string,
    overwrite: boolean
  ) {
    const content = yield* readContent(administration, workspace)
    const texts = yield* readTexts(directory, false)
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
    yield* updateDirectory(directory, textsToWrite, pathsToRemove)
    yield* administration.recordFiles(workspace, files)
    return { written: [...textsToWrite.keys()], removed: pathsToRemove, pending }
  },
  (update, _, __, directory) =>
    Effect.catchTag(update, "InvalidFiles", ({ problems, count }) =>
      Effect.fail(
        new CommandError({
          message: [
            `nothing was written; ${directory} has ${pluralize(count, "problem")}:`,
            ...listProblems(directory, problems, count)
          ].join("\n")
        })
      )
    )
)

const describeUpdate = (
  out: string,
  { written, removed, pending }: Effect.Success<ReturnType<typeof updateFiles>>
): string =>
  [
    ...written.map((path) => toPrintable(`written: ${path}`)),
    ...removed.map((path) => toPrintable(`removed: ${path}`)),
    ...pending.map((path) => toPrintable(`not imported yet: ${path}`)),
    written.length + removed.length === 0
      ? `Nothing changed in ${out}`
      : `${pluralize(written.length + removed.length, "file")} changed in ${out}`
  ].join("\n")

/** Exports a workspace as files, one per prompt, into a directory that does not contain prompts or fragments yet. */
export const runFilesExport = Effect.fnUntraced(function* (workspace: string, out: string, json: boolean) {
  const id = yield* administerWorkspace(
    workspace,
    Effect.fnUntraced(function* (administration, id) {
      const content = yield* readContent(administration, id)
      yield* writeDirectory(out, renderFiles(assignPaths(content, content.importedFiles)))
      return id
    })
  )
  yield* printExported(id, out, json)
})

/** Brings the edits of a workspace into a directory that an export wrote. */
export const runFilesUpdate = Effect.fnUntraced(function* (
  workspace: string,
  out: string,
  overwrite: boolean,
  json: boolean
) {
  const { id, updated } = yield* administerWorkspace(workspace, (administration, id) =>
    Effect.map(updateFiles(administration, id, out, overwrite), (updated) => ({ id, updated }))
  )
  yield* print(json, { workspace_id: id, out: resolve(out), ...updated }, describeUpdate(out, updated))
})
