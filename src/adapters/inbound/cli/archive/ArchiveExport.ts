import { type FileHandle, open } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import * as Effect from "effect/Effect"
import { encodeArchive } from "../../../../application/transfer/Archive.ts"
import { type CommandError, makeWriteError } from "../output/CommandError.ts"
import { administerWorkspace } from "../WithDatabase.ts"
import { printExported } from "../output/Output.ts"
import {
  copyOwnership,
  inspectOutput,
  makeTemporaryDirectory,
  moveIntoPlace,
  type Output,
  openSpecial
} from "../output/OutputFile.ts"

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
export const runArchiveExport = Effect.fnUntraced(function* (
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
