import { stat } from "node:fs/promises"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Administration } from "../../application/Administration.ts"
import type { Fault } from "../../application/Archive.ts"
import type { FileChange } from "../../application/PromptFiles.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import { readArchiveFile, settle } from "./ArchiveFile.ts"
import { CliFailure, WrongUsage } from "./CliFailure.ts"
import { json, workspace } from "./Flags.ts"
import type { Operations } from "./Operations.ts"
import { print, printable, unavailable, workspaceNotFound } from "./Output.ts"
import { makeProgress } from "./Progress.ts"
import { readDirectory } from "./PromptDirectory.ts"

const maxFaultsShown = 100

const describeFaults = (whole: string, faults: ReadonlyArray<Fault>, count = faults.length): CliFailure => {
  const lines = faults
    .slice(0, maxFaultsShown)
    .map(({ path, message }) => printable(`${path === "" ? whole : path}: ${message}`))
  const more = count > maxFaultsShown ? [`… and ${count - maxFaultsShown} more`] : []
  const found = `${count} fault${count === 1 ? "" : "s"}`
  return new CliFailure({
    message: [`nothing was imported; ${whole} has ${found}:`, ...lines, ...more].join("\n")
  })
}

interface Options {
  readonly dryRun: boolean
  readonly json: boolean
}

const importArchive = Effect.fnUntraced(function* (file: string, { dryRun, json }: Options) {
  const { importArchive } = yield* Administration
  const { path, size } = yield* settle(file)
  const progress = makeProgress(size)
  const result = yield* importArchive(readArchiveFile(path, progress.add), { dryRun }).pipe(
    Effect.ensuring(Effect.sync(progress.end)),
    Effect.catchTags({
      BadArchive: ({ faults, count }) => Effect.fail(describeFaults("the archive", faults, count)),
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
      BadFiles: ({ faults }) => Effect.fail(describeFaults(directory, faults)),
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

const isDirectory = (path: string): Effect.Effect<boolean, CliFailure> =>
  path === "-"
    ? Effect.succeed(false)
    : Effect.tryPromise({
        try: async () => (await stat(path)).isDirectory(),
        catch: (error) => new CliFailure({ message: `can't read ${path}: ${(error as Error).message}` })
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
        return yield* new WrongUsage({ message: `${path} is a directory: say --workspace ID` })
      if (!directory && Option.isSome(workspace))
        return yield* new WrongUsage({
          message: "an archive names its workspace itself: leave out --workspace"
        })
      yield* Effect.provide(
        Option.isSome(workspace) ? importFiles(path, workspace.value, options) : importArchive(path, options),
        operations.administration({ migrate: true })
      )
    })
  ).pipe(Command.withDescription("Import a workspace archive or a directory of prompts, all or nothing"))
