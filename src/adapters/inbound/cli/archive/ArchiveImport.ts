import { createReadStream } from "node:fs"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { ImportResult, RowCounts } from "../../../../application/ports/WorkspaceStore.ts"
import { maxArchiveBytes } from "../../../../application/transfer/Archive.ts"
import { ArchiveTooLarge, InvalidContent } from "../../../../domain/WorkspaceContent.ts"
import { type CommandError, makeReadError } from "../output/CommandError.ts"
import { pluralize, print } from "../output/Output.ts"

/** Reads a file, or standard input if the path is `-`. Returns undefined if it is larger than `maxArchiveBytes`. */
const readBytes = async (path: string): Promise<Uint8Array | undefined> => {
  const source: AsyncIterable<Uint8Array> = path === "-" ? process.stdin : createReadStream(path)
  // The operating system allocates memory only for the part of the buffer that is written.
  const bytes = Buffer.allocUnsafeSlow(maxArchiveBytes)
  let size = 0
  for await (const chunk of source) {
    if (size + chunk.length > maxArchiveBytes) return undefined
    bytes.set(chunk, size)
    size += chunk.length
  }
  return bytes.subarray(0, size)
}

const parseJson = (bytes: Uint8Array): Effect.Effect<unknown, InvalidContent> =>
  Effect.try({
    try: () => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
    catch: (error) =>
      InvalidContent([{ path: "", message: `is not a JSON document in UTF-8: ${(error as Error).message}` }])
  })

/** Reads and parses the JSON of an archive. Keeps neither the bytes nor the text in memory. */
const readJson = (path: string): Effect.Effect<unknown, ArchiveTooLarge | CommandError | InvalidContent> =>
  Effect.tryPromise({
    try: () => readBytes(path),
    catch: (error) => makeReadError(path, error)
  }).pipe(
    Effect.filterOrFail(
      (bytes) => bytes !== undefined,
      () => ArchiveTooLarge
    ),
    Effect.flatMap(parseJson)
  )

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
  const imported = yield* readJson(path).pipe(
    Effect.flatMap((archive) =>
      administration.importArchive(archive, { dryRun, source: path === "-" ? "standard input" : path })
    )
  )
  yield* print(json, imported, describeImport(imported, dryRun))
  return hasChanges(imported.rows)
})
