import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { Texts } from "../../../../application/transfer/PromptFile.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { pluralize, print, printExported, toPrintable } from "../output/Output.ts"
import { administerWorkspace } from "../WithDatabase.ts"
import { readTexts, requireNoFiles, updateDirectory } from "./PromptDirectory.ts"

export interface DirectoryExportOptions {
  readonly out: string
  /** If true, updates the files of an existing directory. */
  readonly update: boolean
  readonly overwrite: boolean
  readonly json: boolean
}

/** Writes a workspace into a directory. Returns the paths of the written and the removed files. */
const exportFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  { out, update, overwrite }: DirectoryExportOptions
) {
  if (!update) yield* requireNoFiles(out)
  const texts: Texts = update ? yield* readTexts(out, false) : new Map()
  const { textsToWrite, pathsToRemove } = yield* administration.exportFiles(workspace, texts, { overwrite })
  yield* updateDirectory(out, textsToWrite, pathsToRemove)
  return { workspace_id: workspace, written: [...textsToWrite.keys()], removed: pathsToRemove }
})

const describeUpdate = (
  out: string,
  { written, removed }: Effect.Success<ReturnType<typeof exportFiles>>
): string =>
  [
    ...written.map((path) => toPrintable(`written: ${path}`)),
    ...removed.map((path) => toPrintable(`removed: ${path}`)),
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
