import { createReadStream } from "node:fs"
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, join, resolve } from "node:path"
import { pipeline } from "node:stream/promises"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../application/Administration.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { CommandError, UsageError } from "./CommandError.ts"
import { json, optional, workspace } from "./Flags.ts"
import { handle } from "./Handler.ts"
import { administer } from "./Operations.ts"
import { print } from "./Output.ts"
import { copyOwnership, inspectOutput, moveIntoPlace, type Output, openSpecial } from "./OutputFile.ts"
import { writeDirectory } from "./PromptDirectory.ts"
import { assignPaths } from "./PromptPaths.ts"

/** Runs one step of writing `target`, which error messages name. */
const attempt = <A>(
  target: string,
  run: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, CommandError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => new CommandError({ message: `cannot write ${target}: ${(error as Error).message}` })
  })

/** Creates a directory that is removed with its contents when the scope closes. */
const makeScratchDirectory = (parent: string, prefix: string, target: string) =>
  Effect.acquireRelease(
    attempt(target, () => mkdtemp(join(parent, prefix))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )

/**
 * Writes the complete archive to a scratch file, and then the scratch file to the output. A slow reader of the output
 * does not keep a transaction open, and a failure leaves an existing file unchanged. The scratch file of a regular file
 * is in the same directory, so that a rename replaces the regular file.
 */
const exportArchive = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  target: string,
  output: Output
) {
  const isFile = output.kind === "file"
  const directory = yield* makeScratchDirectory(isFile ? dirname(output.path) : tmpdir(), ".export-", target)
  const scratch = join(directory, isFile ? basename(output.path) : "archive")
  const writeArchive = (handle: FileHandle) =>
    administration.exportArchive(workspace, (text) => attempt(target, () => handle.writeFile(text)))
  const finish = async (handle: FileHandle) => {
    if (isFile && output.existing !== undefined) await copyOwnership(handle, output.existing)
    await handle.sync()
  }
  yield* Effect.acquireUseRelease(
    attempt(target, () => open(scratch, "wx", 0o600)),
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
        return moveIntoPlace(scratch, output.path)
      case "special":
        return pipeline(createReadStream(scratch), await openSpecial(output, signal), { signal })
      case "standard":
        return pipeline(createReadStream(scratch), output.stream, { end: false, signal })
    }
  })
}, Effect.scoped)

const exportFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  directory: string
) {
  const content = yield* administration.readContent(workspace)
  yield* writeDirectory(directory, assignPaths(content))
})

/** `export`. */
export const exportCommand = Command.make(
  "export",
  {
    workspace,
    format: Flag.Literals("format", ["archive", "files"]).pipe(
      Flag.withDefault("archive" as const),
      Flag.withDescription("archive: one JSON file; files: a directory with one Markdown file per prompt")
    ),
    out: optional(Flag.String("out")).pipe(
      Flag.withDescription("Where to write; the default for an archive is standard output")
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ workspace, format, out, json }) {
      const printExported = (target: string) =>
        print(
          json,
          { workspace_id: workspace, out: resolve(target) },
          `Exported workspace ${workspace} to ${target}`
        )
      if (format === "files") {
        if (out === undefined)
          return yield* new UsageError({ message: "--format files needs a directory: add --out DIR" })
        yield* administer((administration) => exportFiles(administration, workspace, out))
        return yield* printExported(out)
      }
      const output: Output =
        out === undefined
          ? { kind: "standard", stream: process.stdout }
          : yield* attempt(out, () => inspectOutput(out))
      yield* administer((administration) =>
        exportArchive(administration, workspace, out ?? "the archive", output)
      )
      const isStdout = output.kind === "standard" && output.stream === process.stdout
      if (out !== undefined && !isStdout) yield* printExported(out)
    })
  )
).pipe(Command.withDescription("Export a workspace in a form that import accepts"))
