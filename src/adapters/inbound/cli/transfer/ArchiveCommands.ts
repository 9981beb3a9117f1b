import { createReadStream } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { ImportResult } from "../../../../application/ports/WorkspaceStore.ts"
import { encodeArchive, maxArchiveBytes } from "../../../../application/transfer/Archive.ts"
import { ArchiveTooLarge, InvalidContent } from "../../../../domain/WorkspaceContent.ts"
import { type CommandError, makeReadError, makeWriteError } from "../output/CommandError.ts"
import { pluralize, print, printExported } from "../output/Output.ts"
import {
  copyOwnership,
  inspectOutput,
  makeTemporaryDirectory,
  moveIntoPlace,
  type Output,
  openSpecial
} from "../output/OutputFile.ts"
import { administerWorkspace } from "../WithDatabase.ts"

// The commands for an archive: import and export.

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
      InvalidContent([{ path: "", message: `is not a JSON document in UTF-8: ${(error as Error).message}` }])
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

interface ArchiveImportOptions {
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
  { path, dryRun, json }: ArchiveImportOptions
) {
  const source = path === "-" ? "standard input" : path
  const imported = yield* administration.importArchive(yield* readJson(path), { dryRun, source })
  yield* print(json, imported, describeImport(imported, dryRun))
  const { added, changed, removed } = imported.rows
  return added + changed + removed > 0
})

type Chunks = ReadonlyArray<Uint8Array>

/** Runs one step of writing to `target`. The error message names `target`. */
const attempt = <A>(
  target: string,
  run: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, CommandError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => makeWriteError(target, error)
  })

/** Writes a temporary file and renames it to the output. A failure leaves an existing file unchanged. */
const replaceFile = Effect.fnUntraced(function* (
  target: string,
  { path, existing }: Extract<Output, { readonly kind: "file" }>,
  chunks: Chunks
) {
  const directory = yield* makeTemporaryDirectory(join(dirname(path), ".export-"), (error) =>
    makeWriteError(target, error)
  )
  const temporaryFile = join(directory, basename(path))
  const write = async (handle: FileHandle) => {
    await handle.writeFile(chunks)
    if (existing !== undefined) await copyOwnership(handle, existing)
    await handle.sync()
  }
  yield* Effect.acquireUseRelease(
    attempt(target, () => open(temporaryFile, "wx", 0o600)),
    (handle) => attempt(target, () => write(handle)),
    (handle) => Effect.promise(() => handle.close())
  )
  yield* attempt(target, () => moveIntoPlace(temporaryFile, path))
}, Effect.scoped)

const writeChunks = (target: string, output: Output, chunks: Chunks) => {
  switch (output.kind) {
    case "file":
      return replaceFile(target, output, chunks)
    case "special":
      return attempt(target, async (signal) =>
        pipeline(Readable.from(chunks), await openSpecial(output, signal), { signal })
      )
    case "standard":
      return attempt(target, (signal) =>
        pipeline(Readable.from(chunks), output.stream, { end: false, signal })
      )
  }
}

/** Exports a workspace as an archive. Writes to standard output if `out` is undefined. */
export const exportArchive = Effect.fnUntraced(function* (
  workspace: string,
  out: string | undefined,
  json: boolean
) {
  const output: Output =
    out === undefined
      ? { kind: "standard", stream: process.stdout }
      : yield* attempt(out, () => inspectOutput(out))
  const archive = yield* administerWorkspace(workspace, (administration, id) =>
    administration.exportArchive(id)
  )
  const chunks = yield* Effect.fromResult(encodeArchive(archive))
  yield* writeChunks(out ?? "the archive", output, chunks)
  const isStdout = output.kind === "standard" && output.stream === process.stdout
  if (out !== undefined && !isStdout) yield* printExported(archive.workspace.id, out, json)
})
