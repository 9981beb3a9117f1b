import { stat } from "node:fs/promises"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Administration } from "../../../application/Administration.ts"
import type { Problem } from "../../../domain/Problem.ts"
import type { FileChange } from "../../../application/formats/PromptFiles.ts"
import type { WorkspaceId } from "../../../domain/Prompt.ts"
import { readArchiveFile, spoolToFile } from "./ArchiveFile.ts"
import { CommandError, UsageError } from "./CommandError.ts"
import { json, workspace } from "./Flags.ts"
import type { Operations } from "./Operations.ts"
import { print, printable, unavailable, workspaceNotFound } from "./Output.ts"
import { makeProgress } from "./Progress.ts"
import { readDirectory } from "./PromptDirectory.ts"

const maxFaultsShown = 100

const describeFaults = (
  whole: string,
  faults: ReadonlyArray<Problem>,
  count = faults.length
): CommandError => {
  const lines = faults
    .slice(0, maxFaultsShown)
    .map(({ path, message }) => printable(`${path === "" ? whole : path}: ${message}`))
  const more = count > maxFaultsShown ? [`… and ${count - maxFaultsShown} more`] : []
  const found = `${count} fault${count === 1 ? "" : "s"}`
  return new CommandError({
    message: [`nothing was imported; ${whole} has ${found}:`, ...lines, ...more].join("\n")
  })
}

interface Options {
  readonly dryRun: boolean
  readonly json: boolean
}

const importArchive = Effect.fnUntraced(function* (file: string, { dryRun, json }: Options) {
  const { importArchive } = yield* Administration
  const { path, size } = yield* spoolToFile(file)
  const progress = makeProgress(size)
  const result = yield* importArchive(readArchiveFile(path, progress.add), { dryRun }).pipe(
    Effect.ensuring(Effect.sync(progress.end)),
    Effect.catchTags({
      InvalidContent: ({ problems: faults, count }) =>
        Effect.fail(describeFaults("the archive", faults, count)),
      Unavailable: () => Effect.fail(unavailable())
    })
  )
  yield* print(
    json,
    result,
    `${dryRun ? "Would import" : "Imported"} ${result.prompts} prompts, ${result.versions} versions and ${result.fragments} fragments into workspace ${result.workspace_id}`
  )
}, Effect.scoped)

const describeChange = ({ kind, id, path, name, change }: FileChange): string =>
  printable(`${change}: ${kind} ${path ?? id} (${name})`)

const importFiles = Effect.fnUntraced(function* (
  directory: string,
  workspace: WorkspaceId,
  { dryRun, json }: Options
) {
  const { importFiles } = yield* Administration
  const changes = yield* readDirectory(directory, workspace).pipe(
    Effect.flatMap((files) => importFiles(workspace, files, { dryRun })),
    Effect.catchTags({
      InvalidFiles: ({ problems: faults }) => Effect.fail(describeFaults(directory, faults)),
      WorkspaceNotFound: () => Effect.fail(workspaceNotFound(workspace)()),
      Unavailable: () => Effect.fail(unavailable())
    })
  )
  const count =
    changes.length === 0 ? "Nothing" : `${changes.length} change${changes.length === 1 ? "" : "s"}`
  const summary =
    changes.length === 0
      ? `${count} ${dryRun ? "would change" : "changed"} in workspace ${workspace}`
      : `${count} ${dryRun ? "would be made" : "made"} in workspace ${workspace}`
  yield* print(
    json,
    { workspace_id: workspace, dry_run: dryRun, changes },
    [...changes.map(describeChange), summary].join("\n")
  )
})

const isDirectory = (path: string): Effect.Effect<boolean, CommandError> =>
  path === "-"
    ? Effect.succeed(false)
    : Effect.tryPromise({
        try: async () => (await stat(path)).isDirectory(),
        catch: (error) => new CommandError({ message: `can't read ${path}: ${(error as Error).message}` })
      })

/** `import`. */
export const importCommand = (operations: Operations) =>
  Command.make(
    "import",
    {
      path: Argument.String("path").pipe(
        Argument.withDescription(
          "A workspace archive, - for one on standard input, or a directory of prompts"
        )
      ),
      workspace: workspace.pipe(
        Flag.optional,
        Flag.withDescription("Id of the workspace, for a directory of prompts")
      ),
      dryRun: Flag.Boolean("dry-run").pipe(
        Flag.withDefault(false),
        Flag.withDescription("Say what would change, and change nothing")
      ),
      json
    },
    Effect.fnUntraced(function* ({ path, workspace, ...options }) {
      const directory = yield* isDirectory(path)
      if (directory && Option.isNone(workspace))
        return yield* new UsageError({ message: `${path} is a directory: say --workspace ID` })
      if (!directory && Option.isSome(workspace))
        return yield* new UsageError({
          message: "an archive names its workspace itself: leave out --workspace"
        })
      yield* Effect.provide(
        Option.isSome(workspace) ? importFiles(path, workspace.value, options) : importArchive(path, options),
        operations.administration({ migrate: true })
      )
    })
  ).pipe(Command.withDescription("Import a workspace archive or a directory of prompts, all or nothing"))
