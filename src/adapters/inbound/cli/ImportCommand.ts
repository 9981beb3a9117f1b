import { stat } from "node:fs/promises"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { Administration, FileImport } from "../../../application/Administration.ts"
import { maxProblems } from "../../../application/formats/ProblemList.ts"
import { findSlotWarnings } from "../../../application/formats/SlotWarnings.ts"
import type { ImportResult, RowCounts } from "../../../application/ports/WorkspaceStore.ts"
import type { Problem } from "../../../domain/Problem.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { readArchiveFile, spoolToFile } from "./ArchiveFile.ts"
import { describeChange, renderDiff } from "./ChangeText.ts"
import { CommandError, makeReadError, UsageError } from "./CommandError.ts"
import { workspaceVariable } from "./Environment.ts"
import { defaultWorkspace, explicitWorkspace, json } from "./Flags.ts"
import { ExitCode } from "./ExitCode.ts"
import { handle } from "./Handler.ts"
import { administer, administerWorkspace } from "./Operations.ts"
import { print, toPrintable, warn } from "./Output.ts"
import { pluralize } from "./Plural.ts"
import { makeProgress, withElapsedTime } from "./Progress.ts"
import { readDirectory } from "./PromptDirectory.ts"

interface Options {
  readonly path: string
  readonly dryRun: boolean
  readonly json: boolean
}

interface DirectoryOptions extends Options {
  readonly overwrite: boolean
  readonly allowEmpty: boolean
}

/** The exit code of `--detailed-exitcode` for an import that changes something. */
const changedExitCode = 2

const describeRows = ({ added, changed, removed }: RowCounts): string =>
  `${pluralize(added, "row")} added, ${changed} changed, ${removed} removed`

const hasChanges = ({ added, changed, removed }: RowCounts): boolean => added + changed + removed > 0

const describeImport = (
  { workspace_id, prompts, versions, fragments, rows }: ImportResult,
  dryRun: boolean
): string => {
  const items = `${pluralize(prompts, "prompt")}, ${pluralize(versions, "version")} and ${pluralize(fragments, "fragment")}`
  return hasChanges(rows)
    ? `${dryRun ? "Would import" : "Imported"} ${items} into workspace ${workspace_id}: ${describeRows(rows)}`
    : `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace_id}, which already has the archive's ${items}`
}

/** Imports an archive. Returns whether anything changes. */
const importArchive = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  { path, dryRun, json }: Options
) {
  const file = yield* spoolToFile(path)
  const progress = makeProgress({ label: "Importing", total: file.size, unit: "bytes" })
  const imported = yield* administration
    .importArchive(readArchiveFile(file.path, progress.add), {
      dryRun,
      source: path === "-" ? "standard input" : path
    })
    .pipe(Effect.ensuring(Effect.sync(progress.end)))
  yield* print(json, imported, describeImport(imported, dryRun))
  return hasChanges(imported.rows)
}, Effect.scoped)

const summarizeChanges = (count: number, dryRun: boolean, workspace: WorkspaceId): string => {
  if (count === 0) return `Nothing ${dryRun ? "would change" : "changed"} in workspace ${workspace}`
  return `${pluralize(count, "change")} ${dryRun ? "would be made" : "made"} in workspace ${workspace}`
}

/** Lists the changes, in a dry run each with its diff. */
const listChanges = ({ changes, fragmentPaths }: FileImport, dryRun: boolean): ReadonlyArray<string> =>
  changes.flatMap((change) => {
    const diff = dryRun ? renderDiff(change, fragmentPaths) : ""
    return diff === "" ? [describeChange(change)] : [describeChange(change), diff, ""]
  })

const toJsonChanges = ({ changes, fragmentPaths }: FileImport, dryRun: boolean) =>
  changes.map((change) => {
    const { before: _, after: __, ...summary } = change
    return dryRun ? { ...summary, diff: renderDiff(change, fragmentPaths) } : summary
  })

const printWarnings = (warnings: ReadonlyArray<Problem>) => {
  const lines = warnings.slice(0, maxProblems).map(({ path, message }) => toPrintable(`${path}: ${message}`))
  const more = warnings.length - lines.length
  return Effect.forEach(more > 0 ? [...lines, `… and ${more} more warnings`] : lines, (line) =>
    warn(false, line)
  )
}

/** Imports a directory of prompts. Returns whether anything changes. */
const importFiles = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  workspace: WorkspaceId,
  { path, dryRun, overwrite, allowEmpty, json }: DirectoryOptions
) {
  const files = yield* readDirectory(path, workspace)
  if (files.prompts.length === 0 && !allowEmpty)
    return yield* new CommandError({
      message: `${path} has no prompts, so the import would archive all prompts of the workspace: add --allow-empty`
    })
  const warnings = findSlotWarnings(files)
  const imported = yield* administration
    .importFiles(workspace, files, { dryRun, overwrite, source: path })
    .pipe(withElapsedTime("Importing"))
  if (!json) yield* printWarnings(warnings)
  const { changes } = imported
  yield* print(
    json,
    { workspace_id: workspace, dry_run: dryRun, changes: toJsonChanges(imported, dryRun), warnings },
    [...listChanges(imported, dryRun), summarizeChanges(changes.length, dryRun, workspace)].join("\n")
  )
  return changes.length > 0
})

const isDirectory = (path: string): Effect.Effect<boolean, CommandError> =>
  path === "-"
    ? Effect.succeed(false)
    : Effect.tryPromise({
        try: async () => (await stat(path)).isDirectory(),
        catch: (error) => makeReadError(path, error)
      })

const flag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDefault(false), Flag.withDescription(description))

/** Runs an import. Returns whether anything changes. */
const runImport = Effect.fnUntraced(function* (workspace: string | undefined, options: DirectoryOptions) {
  if (yield* isDirectory(options.path)) {
    if (workspace === undefined)
      return yield* new UsageError({
        message: `${options.path} is a directory: add --workspace ID or set ${workspaceVariable}`
      })
    return yield* administerWorkspace(
      workspace,
      (administration, id) => importFiles(administration, id, options),
      { migrate: true }
    )
  }
  // The default workspace concerns directories only.
  if (workspace !== undefined && workspace !== (yield* defaultWorkspace))
    return yield* new UsageError({
      message: "an archive names its own workspace: remove --workspace"
    })
  if (options.overwrite || options.allowEmpty)
    return yield* new UsageError({
      message: "--overwrite and --allow-empty are for a directory of prompts: an archive replaces everything"
    })
  return yield* administer((administration) => importArchive(administration, options), { migrate: true })
})

/** `import`. */
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
    dryRun: flag("dry-run", "Show what would change without applying it; for a directory, as a diff"),
    detailedExitcode: flag(
      "detailed-exitcode",
      "Exit with 0 if nothing changes, 2 if something changes, 1 on errors"
    ),
    overwrite: flag("overwrite", "Replace what was edited in the workspace since the latest import"),
    allowEmpty: flag("allow-empty", "Accept a directory without prompts, which archives all prompts"),
    json
  },
  Effect.fnUntraced(function* ({ detailedExitcode, ...input }) {
    let isChanged = false
    yield* handle(({ workspace, ...options }: typeof input) =>
      Effect.map(runImport(workspace, options), (changed) => {
        isChanged = changed
      })
    )(input)
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
