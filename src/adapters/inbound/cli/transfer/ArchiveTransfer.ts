import { createReadStream } from "node:fs"
import * as Effect from "effect/Effect"
import { toMessage } from "../../../../application/ErrorMessage.ts"
import type { ImportResult } from "../../../../application/ports/WorkspaceStore.ts"
import { encodeArchive } from "../../../../application/transfer/Archive.ts"
import { ArchiveTooLarge, InvalidContent, maxArchiveBytes } from "../../../../domain/WorkspaceContent.ts"
import { openDatabase, openWorkspace } from "../OpenDatabase.ts"
import { makeReadError } from "../output/CommandError.ts"
import { pluralize, print, printExported, Stdout } from "../output/Output.ts"
import { isStdout, writeOutput } from "../output/OutputFile.ts"
import type { ImportOptions } from "./FileTransfer.ts"

// The commands for an archive: import and export.

/**
 * Reads a file, or standard input for the path `-`. Returns undefined if the input exceeds `maxArchiveBytes`. Node reads
 * the file, because `FileSystem.stream` reads at positions, and so fails for a pipe such as `/dev/stdin`.
 */
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

/** Reads and parses the JSON of an archive. Keeps neither the bytes nor the text in memory. */
const readJson = Effect.fnUntraced(function* (path: string) {
  const bytes = yield* Effect.tryPromise({
    try: () => readBytes(path),
    catch: (error) => makeReadError(path, error)
  })
  if (bytes === undefined) return yield* Effect.fail(ArchiveTooLarge)
  return yield* Effect.try({
    try: (): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
    catch: (error) =>
      InvalidContent([{ path: "", message: `is not a JSON document in UTF-8: ${toMessage(error)}` }])
  })
})

const describeImport = (
  { workspace_id, prompts, versions, fragments, rows: { added, changed, removed } }: ImportResult,
  dryRun: boolean
): string => {
  const items = `${pluralize(prompts, "prompt")}, ${pluralize(versions, "version")} and ${pluralize(fragments, "fragment")}`
  return added + changed + removed === 0
    ? `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace_id}, which already has the archive's ${items}`
    : `${dryRun ? "Would import" : "Imported"} ${items} into workspace ${workspace_id}: ${pluralize(added, "row")} added, ${changed} changed, ${removed} removed`
}

/** Imports an archive and prints the result. Returns true if anything changes or, in a dry run, would change. */
export const importArchive = Effect.fnUntraced(function* ({ path, dryRun }: ImportOptions) {
  const source = path === "-" ? "standard input" : path
  const imported = yield* Effect.scoped(
    Effect.gen(function* () {
      const { importArchive } = yield* openDatabase(!dryRun)
      return yield* importArchive(yield* readJson(path), { dryRun, source })
    })
  )
  yield* print(imported, describeImport(imported, dryRun))
  const { added, changed, removed } = imported.rows
  return added + changed + removed > 0
})

/** Exports a workspace as an archive. Writes to standard output if `out` is undefined. */
export const exportArchive = Effect.fnUntraced(function* (workspace: string, out: string | undefined) {
  const archive = yield* Effect.scoped(
    Effect.flatMap(openWorkspace(workspace), ({ exportArchive, id }) => exportArchive(id))
  )
  const chunks = yield* Effect.fromResult(encodeArchive(archive))
  if (out === undefined || isStdout(out))
    return yield* Effect.forEach(chunks, yield* Stdout, { discard: true })
  yield* writeOutput(out, chunks)
  yield* printExported(archive.workspace.id, out)
})
