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
import { CommandError, UsageError, makeWriteError } from "./CommandError.ts"
import { planUpdate } from "./DirectoryUpdate.ts"
import { listProblems } from "./Errors.ts"
import { json, optional, workspace } from "./Flags.ts"
import { handle } from "./Handler.ts"
import { administerWorkspace } from "./Operations.ts"
import { print, toPrintable } from "./Output.ts"
import { copyOwnership, inspectOutput, moveIntoPlace, type Output, openSpecial } from "./OutputFile.ts"
import { pluralize } from "./Plural.ts"
import { withElapsedTime } from "./Progress.ts"
import { readTexts, updateDirectory, writeDirectory } from "./PromptDirectory.ts"
import { assignPaths } from "./PromptPaths.ts"

/** Runs one step of writing `target`, which error messages name. */
const attempt = <A>(
  target: string,
  run: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, CommandError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => makeWriteError(target, error)
  })

/** Creates a directory that is removed with its contents when the scope closes. */
const makeTemporaryDirectory = (parent: string, prefix: string, target: string) =>
  Effect.acquireRelease(
    attempt(target, () => mkdtemp(join(parent, prefix))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )

/**
 * Writes the complete archive to a temporary file, and then the temporary file to the output. A slow reader of the
 * output does not keep a transaction open, and a failure leaves an existing file unchanged. The temporary file of
 * a regular file is in the same directory, so that a rename replaces the regular file.
 */
const exportArchive = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  target: string,
  output: Output
) {
  const isFile = output.kind === "file"
  const directory = yield* makeTemporaryDirectory(
    isFile ? dirname(output.path) : tmpdir(),
    ".export-",
    target
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

const readContent = (administration: Administration["Service"], workspace: WorkspaceId) =>
  administration.readContent(workspace).pipe(withElapsedTime("Exporting"))

const exportFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  directory: string
) {
  const content = yield* readContent(administration, workspace)
  yield* writeDirectory(directory, assignPaths(content, content.importedFiles))
})

/**
 * Brings the edits of a workspace into a directory, and records that it contains them. Returns the paths of the files
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
    const texts = yield* readTexts(directory)
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

/** `export`. */
export const exportCommand = Command.make(
  "export",
  {
    workspace,
    format: Flag.Literals("format", ["archive", "files"]).pipe(
      Flag.withDefault("archive" as const),
      Flag.withDescription(
        "archive: one JSON file, with the hashes of the keys and their owners' emails; files: a directory with one Markdown file per prompt (default: archive)"
      )
    ),
    out: optional(Flag.String("out")).pipe(
      Flag.withDescription("Where to write (default for an archive: standard output)")
    ),
    update: Flag.Boolean("update").pipe(
      Flag.withDefault(false),
      Flag.withDescription("For files: bring edits of the workspace into an existing directory")
    ),
    overwrite: Flag.Boolean("overwrite").pipe(
      Flag.withDefault(false),
      Flag.withDescription("With --update: also replace files that were changed since the latest import")
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ workspace, format, out, update, overwrite, json }) {
      const printExported = (id: WorkspaceId, target: string) =>
        print(json, { workspace_id: id, out: resolve(target) }, `Exported workspace ${id} to ${target}`)
      if (overwrite && !update) return yield* new UsageError({ message: "--overwrite needs --update" })
      if (format === "files") {
        if (out === undefined)
          return yield* new UsageError({ message: "--format files needs a directory: add --out DIR" })
        if (update) {
          const { id, updated } = yield* administerWorkspace(workspace, (administration, id) =>
            Effect.map(updateFiles(administration, id, out, overwrite), (updated) => ({ id, updated }))
          )
          return yield* print(
            json,
            { workspace_id: id, out: resolve(out), ...updated },
            describeUpdate(out, updated)
          )
        }
        const id = yield* administerWorkspace(workspace, (administration, id) =>
          Effect.as(exportFiles(administration, id, out), id)
        )
        return yield* printExported(id, out)
      }
      if (update) return yield* new UsageError({ message: "--update is for --format files" })
      const output: Output =
        out === undefined
          ? { kind: "standard", stream: process.stdout }
          : yield* attempt(out, () => inspectOutput(out))
      const id = yield* administerWorkspace(workspace, (administration, id) =>
        Effect.as(exportArchive(administration, id, out ?? "the archive", output), id)
      )
      const isStdout = output.kind === "standard" && output.stream === process.stdout
      if (out !== undefined && !isStdout) yield* printExported(id, out)
    })
  )
).pipe(
  Command.withDescription("Export a workspace in a form that import accepts"),
  Command.withExamples([
    { command: "prompt-retrieval export --workspace Acme --out workspace.json" },
    { command: "prompt-retrieval export --workspace Acme --format files --out prompts-of-acme" },
    { command: "prompt-retrieval export --workspace Acme --format files --update --out prompts-of-acme" }
  ])
)
