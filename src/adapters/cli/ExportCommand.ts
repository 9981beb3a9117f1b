import { createReadStream } from "node:fs"
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, join, resolve } from "node:path"
import { pipeline } from "node:stream/promises"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Administration } from "../../application/Administration.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import { CliFailure, WrongUsage } from "./CliFailure.ts"
import { json, workspace } from "./Flags.ts"
import type { Operations } from "./Operations.ts"
import { copyOwnership, inspectOutput, moveIntoPlace, type Output, openSpecial } from "./OutputFile.ts"
import { print, unavailable, workspaceNotFound } from "./Output.ts"
import { layOut, writeDirectory } from "./PromptDirectory.ts"

const attempt = <A>(what: string, run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, CliFailure> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => new CliFailure({ message: `can't write ${what}: ${(error as Error).message}` })
  })

/** A directory that goes with the scope, with whatever is in it. */
const scratch = (parent: string, prefix: string, what: string) =>
  Effect.acquireRelease(
    attempt(what, () => mkdtemp(join(parent, prefix))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )

/**
 * Writes the whole archive to a scratch file first, beside a file that it replaces. A slow reader of the output never
 * keeps the database waiting, and a failure leaves an existing file as it was.
 */
const exportArchive = Effect.fnUntraced(function* (workspace: WorkspaceId, what: string, output: Output) {
  const isFile = output.kind === "file"
  const directory = yield* scratch(isFile ? dirname(output.path) : tmpdir(), ".export-", what)
  const file = join(directory, isFile ? basename(output.path) : "archive")
  const write = (handle: FileHandle) =>
    Effect.flatMap(Administration, ({ exportArchive }) =>
      exportArchive(workspace, (text) => attempt(what, () => handle.writeFile(text)))
    )
  const finish = async (handle: FileHandle) => {
    if (isFile && output.existing !== undefined) await copyOwnership(handle, output.existing)
    await handle.sync()
  }
  yield* Effect.acquireUseRelease(
    attempt(what, () => open(file, "wx", 0o600)),
    (handle) =>
      Effect.andThen(
        write(handle),
        attempt(what, () => finish(handle))
      ),
    (handle) => Effect.promise(() => handle.close())
  )
  yield* attempt(what, async (signal) => {
    switch (output.kind) {
      case "file":
        return moveIntoPlace(file, output.path)
      case "special":
        return pipeline(createReadStream(file), await openSpecial(output, signal), { signal })
      case "standard":
        return pipeline(createReadStream(file), output.stream, { end: false, signal })
    }
  })
}, Effect.scoped)

const exportFiles = Effect.fnUntraced(function* (workspace: WorkspaceId, directory: string) {
  const { readContent } = yield* Administration
  yield* writeDirectory(directory, layOut(yield* readContent(workspace)))
})

/** `export`. */
export const exportCommand = (operations: Operations) =>
  Command.make(
    "export",
    {
      workspace,
      format: Flag.Literals("format", ["archive", "files"]).pipe(
        Flag.withDefault("archive" as const),
        Flag.withDescription("One file with everything, or a directory with a file a prompt")
      ),
      out: Flag.String("out").pipe(
        Flag.optional,
        Flag.withDescription("Where to write; an archive goes to standard output unless told otherwise")
      ),
      json
    },
    Effect.fnUntraced(function* ({ workspace, format, out, json }) {
      const target = Option.getOrUndefined(out)
      if (format === "files" && target === undefined)
        return yield* new WrongUsage({ message: "--format files needs a directory: say --out DIR" })
      const standardOutput: Output = { kind: "standard", stream: process.stdout }
      const output =
        format === "files" || target === undefined
          ? standardOutput
          : yield* attempt(target, () => inspectOutput(target))
      const exported =
        format === "files"
          ? exportFiles(workspace, target!)
          : exportArchive(workspace, target ?? "the archive", output)
      yield* exported.pipe(
        Effect.catchTags({
          WorkspaceNotFound: () => Effect.fail(workspaceNotFound(workspace)()),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(operations.administration({ migrate: false }))
      )
      const isArchiveOnStdout =
        format === "archive" && output.kind === "standard" && output.stream === process.stdout
      if (target !== undefined && !isArchiveOnStdout) {
        const result = { workspace_id: workspace, out: resolve(target) }
        yield* print(json, result, `Exported workspace ${workspace} to ${target}`)
      }
    })
  ).pipe(Command.withDescription("Export a workspace as an archive or as files, which import takes"))
