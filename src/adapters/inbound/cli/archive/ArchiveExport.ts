import { createReadStream } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { type CommandError, makeWriteError } from "../output/CommandError.ts"
import { makeTemporaryDirectory } from "../TemporaryDirectory.ts"
import { administerWorkspace } from "../WithDatabase.ts"
import { printExported } from "../output/Output.ts"
import {
  copyOwnership,
  inspectOutput,
  moveIntoPlace,
  type Output,
  openSpecial
} from "../output/OutputFile.ts"

/** Runs one step of writing to `target`. The error message names `target`. */
const attempt = <A>(
  target: string,
  run: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, CommandError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => makeWriteError(target, error)
  })

/**
 * Writes the complete archive to a temporary file, then moves or copies the temporary file to the output. So a slow
 * reader of the output keeps no transaction open, and a failure leaves an existing file unchanged. If the output is a
 * regular file, the temporary file is on the same file system, so that a rename can replace the regular file.
 */
const exportArchive = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  target: string,
  output: Output
) {
  const isFile = output.kind === "file"
  const directory = yield* makeTemporaryDirectory(
    join(isFile ? dirname(output.path) : tmpdir(), ".export-"),
    (error) => makeWriteError(target, error)
  )
  const temporaryFile = join(directory, isFile ? basename(output.path) : "archive")
  const writeArchive = (handle: FileHandle) =>
    administration.exportArchive(workspace, (text) => attempt(target, () => handle.writeFile(text)))
  const finish = async (handle: FileHandle) => {
    if (isFile && output.existing !== undefined) await copyOwnership(handle, output.existing)
    await handle.sync()
  }
  yield* Effect.acquireUseRelease(
    attempt(target, () => open(temporaryFile, "wx", 0o600)),
    (handle) =>
      Effect.andThen(
        writeArchive(handle),
        attempt(target, () => finish(handle))
      ),
    (handle) => Effect.promise(() => handle.close())
  )
  yield* attempt(target, async (signal) => {
    switch (output.kind) {
      case "file":
        return moveIntoPlace(temporaryFile, output.path)
      case "special":
        return pipeline(createReadStream(temporaryFile), await openSpecial(output, signal), { signal })
      case "standard":
        return pipeline(createReadStream(temporaryFile), output.stream, { end: false, signal })
    }
  })
}, Effect.scoped)

/** Exports a workspace as an archive. Writes to standard output if `out` is undefined. */
export const runArchiveExport = Effect.fnUntraced(function* (
  workspace: string,
  out: string | undefined,
  json: boolean
) {
  const output: Output =
    out === undefined
      ? { kind: "standard", stream: process.stdout }
      : yield* attempt(out, () => inspectOutput(out))
  const id = yield* administerWorkspace(workspace, (administration, id) =>
    Effect.as(exportArchive(administration, id, out ?? "the archive", output), id)
  )
  const isStdout = output.kind === "standard" && output.stream === process.stdout
  if (out !== undefined && !isStdout) yield* printExported(id, out, json)
})
