import { stat } from "node:fs/promises"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { type CommandError, ExitCode, makeReadError, UsageError } from "../output/CommandError.ts"
import { workspaceVariable } from "../input/Environment.ts"
import { booleanFlag, defaultWorkspace, explicitWorkspace, json } from "../input/Flags.ts"
import { handle } from "../CommandHandler.ts"
import type { DirectoryImportOptions } from "../files/FilesImport.ts"
import { administer, administerWorkspace } from "../WithDatabase.ts"

/** The exit code with `--detailed-exitcode` if an import changes something. */
const changedExitCode = 2

const isDirectory = (path: string): Effect.Effect<boolean, CommandError> =>
  path === "-"
    ? Effect.succeed(false)
    : Effect.tryPromise({
        try: async () => (await stat(path)).isDirectory(),
        catch: (error) => makeReadError(path, error)
      })

/**
 * Imports an archive or a directory. Loads only the module for the one that is imported. Returns true if the import
 * changes anything, or would change anything without the dry run.
 */
const runImport = Effect.fnUntraced(function* (
  workspace: string | undefined,
  options: DirectoryImportOptions
) {
  const openOptions = { migrate: !options.dryRun }
  if (yield* isDirectory(options.path)) {
    if (workspace === undefined)
      return yield* new UsageError({
        message: `${options.path} is a directory: add --workspace ID or set ${workspaceVariable}`
      })
    const { importFiles } = yield* Effect.promise(() => import("../files/FilesImport.ts"))
    return yield* administerWorkspace(
      workspace,
      (administration, id) => importFiles(administration, id, options),
      openOptions
    )
  }
  // For an archive, the default workspace is ignored. A `--workspace` is an error only if its value differs from the
  // default.
  if (workspace !== undefined && workspace !== (yield* defaultWorkspace))
    return yield* new UsageError({
      message: "an archive names its own workspace: remove --workspace"
    })
  if (options.overwrite || options.allowEmpty)
    return yield* new UsageError({
      message: "--overwrite and --allow-empty are for a directory of prompts: an archive replaces everything"
    })
  const { importArchive } = yield* Effect.promise(() => import("../archive/ArchiveImport.ts"))
  return yield* administer((administration) => importArchive(administration, options), openOptions)
})

export const importCommand = Command.make(
  "import",
  {
    path: Argument.String("path").pipe(
      Argument.withDescription("Workspace archive (- for standard input) or directory of prompts")
    ),
    workspace: explicitWorkspace.pipe(
      Flag.withDefault(defaultWorkspace),
      Flag.withDescription(
        `Id or unique name of the workspace, for a directory of prompts (default: $${workspaceVariable})`
      )
    ),
    dryRun: booleanFlag("dry-run", "Show what would change without applying it; for a directory, as a diff"),
    detailedExitcode: booleanFlag(
      "detailed-exitcode",
      "Exit with 0 if nothing changes, 2 if something changes, 1 on errors"
    ),
    overwrite: booleanFlag("overwrite", "Replace what was edited in the workspace since the latest import"),
    allowEmpty: booleanFlag("allow-empty", "Accept a directory without prompts, which archives all prompts"),
    json
  },
  Effect.fnUntraced(function* ({ detailedExitcode, ...input }) {
    const run = handle(({ workspace, ...options }: typeof input) => runImport(workspace, options))
    const isChanged = yield* run(input)
    if (detailedExitcode && isChanged) return yield* new ExitCode({ exitCode: changedExitCode })
  })
).pipe(
  Command.withDescription("Import a workspace archive or a directory of prompts, all or nothing"),
  Command.withExamples([
    { command: "prompt-retrieval import workspace.json --dry-run" },
    { command: "prompt-retrieval import prompts-of-acme --workspace Acme" },
    { command: "prompt-retrieval import prompts-of-acme --workspace Acme --dry-run --detailed-exitcode" }
  ])
)
