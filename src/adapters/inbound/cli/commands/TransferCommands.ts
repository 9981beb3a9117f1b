import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { handle, withHelp } from "../CommandBuilders.ts"
import { workspaceVariable } from "../input/Environment.ts"
import {
  booleanFlag,
  defaultWorkspace,
  json,
  optional,
  pathArgument,
  pathFlag,
  workspace,
  workspaceFor
} from "../input/Flags.ts"
import { makeReadError, ResultExit, UsageError } from "../output/CommandError.ts"
import { exportArchive, importArchive } from "../transfer/ArchiveTransfer.ts"
import type { ImportOptions } from "../transfer/FileTransfer.ts"

const isDirectory = Effect.fnUntraced(function* (path: string) {
  if (path === "-") return false
  const { stat } = yield* FileSystem.FileSystem
  const { type } = yield* Effect.mapError(stat(path), (error) => makeReadError(path, error))
  return type === "Directory"
})

// Only commands for a directory of prompts load the modules that parse and compare files.
const fileTransfer = Effect.promise(() => import("../transfer/FileTransfer.ts"))

const rejectUsage = (message: string) => Effect.fail(new UsageError({ message }))

const importAny = Effect.fnUntraced(function* (workspace: string | undefined, options: ImportOptions) {
  if (yield* isDirectory(options.path)) {
    if (workspace === undefined)
      return yield* rejectUsage(
        `${options.path} is a directory: add --workspace ID or set ${workspaceVariable}`
      )
    const { importFiles } = yield* fileTransfer
    return yield* importFiles(workspace, options)
  }
  // An import of an archive ignores the default workspace, and also a `--workspace` with the same value.
  if (workspace !== undefined && workspace !== (yield* defaultWorkspace))
    return yield* rejectUsage("an archive names its own workspace: remove --workspace")
  if (options.overwrite || options.allowEmpty)
    return yield* rejectUsage(
      "--overwrite and --allow-empty are for a directory of prompts: an archive replaces everything"
    )
  return yield* importArchive(options)
})

export const importCommand = Command.make(
  "import",
  {
    path: pathArgument("path", "Workspace archive (- for standard input) or directory of prompts"),
    workspace: workspaceFor("a directory of prompts"),
    dryRun: booleanFlag("dry-run", "Show what would change without applying it; for a directory, as a diff"),
    detailedExitcode: booleanFlag(
      "detailed-exitcode",
      "Exit with 0 if nothing changes, 2 if something changes, 1 on errors"
    ),
    overwrite: booleanFlag("overwrite", "Replace what was edited in the workspace since the latest import"),
    allowEmpty: booleanFlag("allow-empty", "Accept a directory without prompts, which archives all prompts"),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ workspace, detailedExitcode, ...options }) {
      const isChanged = yield* importAny(workspace, options)
      if (detailedExitcode && isChanged) return yield* new ResultExit()
    })
  )
).pipe(
  withHelp(
    "Import a workspace archive or a directory of prompts, all or nothing",
    "import workspace.json --dry-run",
    "import prompts-of-acme --workspace Acme",
    "import prompts-of-acme --workspace Acme --dry-run --detailed-exitcode"
  )
)

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
    out: optional(pathFlag("out"), "Where to write (default for an archive: standard output)"),
    update: booleanFlag("update", "For files: bring edits of the workspace into an existing directory"),
    overwrite: booleanFlag(
      "overwrite",
      "With --update: also replace and remove files that were added or edited since the latest import"
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ workspace, format, out, ...options }) {
      if (options.overwrite && !options.update) return yield* rejectUsage("--overwrite needs --update")
      if (format === "archive" && options.update) return yield* rejectUsage("--update is for --format files")
      if (format === "archive") return yield* exportArchive(workspace, out)
      if (out === undefined) return yield* rejectUsage("--format files needs a directory: add --out DIR")
      const { exportFiles } = yield* fileTransfer
      yield* exportFiles(workspace, out, options)
    })
  )
).pipe(
  withHelp(
    "Export a workspace in a form that import accepts",
    "export --workspace Acme --out workspace.json",
    "export --workspace Acme --format files --out prompts-of-acme",
    "export --workspace Acme --format files --update --out prompts-of-acme"
  )
)

export const checkCommand = Command.make(
  "check",
  {
    directory: pathArgument("directory", "Directory of prompts"),
    against: optional(
      pathFlag("against").pipe(Flag.withMetavar("<directory>")),
      "Compare with an earlier state, such as a checkout of the main branch: print changes that can break applications, and exit with 2 if there are any"
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ directory, against }) {
      const { checkDirectory } = yield* fileTransfer
      if (yield* checkDirectory(directory, against)) return yield* new ResultExit()
    })
  )
).pipe(
  withHelp(
    "Check a directory of prompts without a database",
    "check prompts-of-acme",
    "check prompts-of-acme --against ../main/prompts-of-acme"
  )
)
