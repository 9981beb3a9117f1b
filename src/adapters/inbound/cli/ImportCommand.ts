import { stat } from "node:fs/promises"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../application/Administration.ts"
import type { FileChange } from "../../../application/formats/PromptFiles.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { readArchiveFile, spoolToFile } from "./ArchiveFile.ts"
import { CommandError, UsageError } from "./CommandError.ts"
import { json, optional, workspace } from "./Flags.ts"
import { handle } from "./Handler.ts"
import { administer } from "./Operations.ts"
import { print, printable } from "./Output.ts"
import { makeProgress } from "./Progress.ts"
import { readDirectory } from "./PromptDirectory.ts"

interface Options {
  readonly path: string
  readonly dryRun: boolean
  readonly json: boolean
}

const importArchive = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  { path, dryRun, json }: Options
) {
  const file = yield* spoolToFile(path)
  const progress = makeProgress(file.size)
  const imported = yield* administration
    .importArchive(readArchiveFile(file.path, progress.add), { dryRun })
    .pipe(Effect.ensuring(Effect.sync(progress.end)))
  const { workspace_id, prompts, versions, fragments } = imported
  yield* print(
    json,
    imported,
    `${dryRun ? "Would import" : "Imported"} ${prompts} prompts, ${versions} versions and ${fragments} fragments into workspace ${workspace_id}`
  )
}, Effect.scoped)

const describeChange = ({ kind, id, path, name, change }: FileChange): string =>
  printable(`${change}: ${kind} ${path ?? id} (${name})`)

const summarizeChanges = (count: number, dryRun: boolean, workspace: WorkspaceId): string => {
  if (count === 0) return `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace}`
  const changes = `${count} change${count === 1 ? "" : "s"}`
  return `${changes} ${dryRun ? "would be made" : "made"} in workspace ${workspace}`
}

const importFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  { path, dryRun, json }: Options
) {
  const files = yield* readDirectory(path, workspace)
  const changes = yield* administration.importFiles(workspace, files, { dryRun })
  yield* print(
    json,
    { workspace_id: workspace, dry_run: dryRun, changes },
    [...changes.map(describeChange), summarizeChanges(changes.length, dryRun, workspace)].join("\n")
  )
})

const isDirectory = (path: string): Effect.Effect<boolean, CommandError> =>
  path === "-"
    ? Effect.succeed(false)
    : Effect.tryPromise({
        try: async () => (await stat(path)).isDirectory(),
        catch: (error) => new CommandError({ message: `cannot read ${path}: ${(error as Error).message}` })
      })

/** `import`. */
export const importCommand = Command.make(
  "import",
  {
    path: Argument.String("path").pipe(
      Argument.withDescription("Workspace archive (- for standard input) or directory of prompts")
    ),
    workspace: optional(workspace).pipe(
      Flag.withDescription("Id of the workspace, for a directory of prompts")
    ),
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Show what would change without applying it")
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ workspace, ...options }) {
      const directory = yield* isDirectory(options.path)
      if (directory && workspace === undefined)
        return yield* new UsageError({ message: `${options.path} is a directory: add --workspace ID` })
      if (!directory && workspace !== undefined)
        return yield* new UsageError({
          message: "an archive names its own workspace: remove --workspace"
        })
      yield* workspace === undefined
        ? administer((administration) => importArchive(administration, options), { migrate: true })
        : administer((administration) => importFiles(administration, workspace, options), { migrate: true })
    })
  )
).pipe(Command.withDescription("Import a workspace archive or a directory of prompts, all or nothing"))
