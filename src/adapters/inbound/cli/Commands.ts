import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import { programVersion, versionText } from "../../../application/ProgramVersion.ts"
import { withHelp } from "./CommandBuilders.ts"
import { auditCommands } from "./commands/AuditCommands.ts"
import { keyCommands } from "./commands/KeyCommands.ts"
import {
  helpCommand,
  makeCompletionCommand,
  migrateCommand,
  serveCommand,
  versionCommand
} from "./commands/ProgramCommands.ts"
import { folderCommands, promptCommands, tagCommands } from "./commands/PromptCommands.ts"
import { checkCommand, exportCommand, importCommand } from "./commands/TransferCommands.ts"
import { userCommands } from "./commands/UserCommands.ts"
import { workspaceCommands } from "./commands/WorkspaceCommands.ts"
import { commonVariables, Variables } from "./input/Environment.ts"
import { addHelp, beforeOperands, describeUsage, findCommand, isJsonRequested } from "./input/UsageErrors.ts"
import { AsJson, reportError, UsageError } from "./output/CommandError.ts"
import { formatHelp } from "./output/Help.ts"
import { Stdout } from "./output/Output.ts"

export const rootCommand = Command.make("prompt-retrieval").pipe(
  withHelp(
    "Read-only prompt retrieval over HTTP",
    "workspaces create --name Acme --tier solo",
    "keys issue --workspace Acme --user ada@example.com",
    "help keys issue"
  ),
  Command.annotate(Variables, commonVariables),
  Command.withSubcommands([
    serveCommand,
    migrateCommand,
    importCommand,
    exportCommand,
    checkCommand,
    workspaceCommands,
    userCommands,
    keyCommands,
    promptCommands,
    folderCommands,
    tagCommands,
    auditCommands,
    helpCommand,
    versionCommand,
    makeCompletionCommand((): Command.Command.Any => rootCommand)
  ])
)

const isHelpFlag = (arg: string): boolean => arg === "--help" || arg === "-h"

/**
 * Converts `help COMMAND`, and any command line with `--help` or `-h`, to `COMMAND --help`. If the command does not
 * exist, omits `--help`, so that the parser reports the unknown word instead of printing the help of the parent
 * command.
 */
const replaceHelp = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const flags = beforeOperands(args)
  const isHelpRequested = flags.some(isHelpFlag)
  if (!isHelpRequested && args[0] !== "help") return args
  const words = isHelpRequested ? flags.filter((arg) => !isHelpFlag(arg)) : args.slice(1)
  const { path, isUnknown } = findCommand(rootCommand, words)
  return isUnknown ? words : [...path, "--help"]
}

/**
 * Runs the command line and returns its exit code: 0 for success, 1 if the command failed, and 2 for wrong usage. The
 * code is also 2 if an import with `--detailed-exitcode` changes something, or if `check` finds changes that can break
 * applications. Prints help and the version to stdout, and a failure to stderr. With `--json`, the failure is one line
 * of JSON.
 */
export const runCommandLine = Effect.fnUntraced(
  function* (args: ReadonlyArray<string>) {
    let requested = ""
    const presenter: CliOutput.Presenter = {
      present: (event) =>
        Effect.sync(() => {
          if (event._tag === "Help" && event.reason === "Requested") requested = formatHelp(event.helpDoc)
          if (event._tag === "Version") requested = versionText
        })
    }
    yield* Command.runWith(rootCommand, { version: programVersion })(replaceHelp(args)).pipe(
      Effect.provideService(CliOutput.Presenter, presenter),
      Effect.provideService(
        CliConfig.CliConfig,
        CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
      )
    )
    if (requested !== "") yield* (yield* Stdout)(`${requested}\n`)
    return 0
  },
  (run, args) => {
    const found = findCommand(rootCommand, replaceHelp(args))
    return Effect.catchTags(run, {
      ShowHelp: ({ errors }) => reportError(addHelp(found, describeUsage(found, errors))),
      ResultExit: ({ exitCode }) => Effect.succeed<number>(exitCode),
      CommandError: (error) =>
        reportError(error instanceof UsageError ? addHelp(found, error.message) : error)
    }).pipe(Effect.provideService(AsJson, isJsonRequested(args)))
  }
)
