import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { ImportResult, RowCounts } from "../../../../application/ports/WorkspaceStore.ts"
import { readArchiveFile, spoolToFile } from "./ArchiveFile.ts"
import { pluralize, print } from "../output/Output.ts"
import { withProgress } from "../output/Progress.ts"

const describeRows = ({ added, changed, removed }: RowCounts): string =>
  `${pluralize(added, "row")} added, ${changed} changed, ${removed} removed`

const hasChanges = ({ added, changed, removed }: RowCounts): boolean => added + changed + removed > 0

const describeImport = (
  { workspace_id, prompts, versions, fragments, rows }: ImportResult,
  dryRun: boolean
): string => {
  const items = `${pluralize(prompts, "prompt")}, ${pluralize(versions, "version")} and ${pluralize(fragments, "fragment")}`
  return hasChanges(rows)
    ? `${dryRun ? "Would import" : "Imported"} ${items} into workspace ${workspace_id}: ${describeRows(rows)}`
    : `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace_id}, which already has the archive's ${items}`
}

interface ImportOptions {
  readonly path: string
  readonly dryRun: boolean
  readonly json: boolean
}

/**
 * Imports an archive and prints the result. Returns true if the import changes anything, or would change anything
 * without the dry run.
 */
export const importArchive = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  { path, dryRun, json }: ImportOptions
) {
  const file = yield* spoolToFile(path)
  let readBytes = 0
  const addBytes = (count: number) => {
    readBytes += count
  }
  const describeProgress = () =>
    `${Math.min(100, Math.floor((100 * readBytes) / file.size))}% of ${(file.size / 2 ** 20).toFixed(1)} MiB`
  const imported = yield* administration
    .importArchive(readArchiveFile(file.path, addBytes), {
      dryRun,
      source: path === "-" ? "standard input" : path
    })
    .pipe(withProgress("Importing", describeProgress))
  yield* print(json, imported, describeImport(imported, dryRun))
  return hasChanges(imported.rows)
}, Effect.scoped)
