import * as Console from "effect/Console"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import { auditCommands } from "./commands/AuditCommands.ts"
import { beforeOperands, findCommand, isJsonRequested } from "./input/CommandTree.ts"
import { booleanFlag } from "./input/Flags.ts"
import { commonVariables, serveVariables, Variables } from "./input/Environment.ts"
import { folderCommands, tagCommands } from "./commands/FolderAndTagCommands.ts"
import { type ExitError, toExitError } from "./output/ExitError.ts"
import { checkCommand } from "./commands/CheckCommand.ts"
import { exportCommand } from "./commands/ExportCommand.ts"
import { formatHelp, formatVersion } from "./output/Help.ts"
import { importCommand } from "./commands/ImportCommand.ts"
import { keyCommands } from "./commands/KeyCommands.ts"
import { migrateCommand } from "./commands/MigrateCommand.ts"
import { CommandRuntime } from "./CommandRuntime.ts"
import { formatFailure, writeOutput } from "./output/Output.ts"
import { helpCommand, makeCompletionCommand, versionCommand } from "./commands/ProgramCommands.ts"
import { promptCommands } from "./commands/PromptCommands.ts"
import { handleServe } from "./ServeHandler.ts"
import { toUsageFailure } from "./input/UsageErrors.ts"
import { userCommands } from "./commands/UserCommands.ts"
import { workspaceCommands } from "./commands/WorkspaceCommands.ts"

const demo = booleanFlag("demo", "Create a demo workspace if the embedded database has no workspace")

const serveCommand = Command.make("serve", { demo }, handleServe).pipe(
  Command.withDescription("Migrate the database and serve the API"),
  Command.annotate(Variables, serveVariables),
  Command.withExamples([
    { command: "prompt-retrieval serve" },
    { command: "prompt-retrieval serve --demo" },
    { command: "DATABASE_URL=postgres://user:password@host/database PORT=8080 prompt-retrieval serve" }
  ])
)

export const rootCommand = Command.make("prompt-retrieval").pipe(
  Command.withDescription("Read-only prompt retrieval over HTTP"),
  Command.annotate(Variables, commonVariables),
  Command.withExamples([
    { command: "prompt-retrieval workspaces create --name Acme --tier solo" },
    { command: "prompt-retrieval keys issue --workspace Acme --user ada@example.com" },
    { command: "prompt-retrieval help keys issue" }
  ]),
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

const helpFlags: ReadonlyArray<string> = ["--help", "-h"]

/** Replaces the command `help` with the flag `--help`, and the command `version` with the flag `--version`. */
const replaceByFlags = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [command, ...operands] = args
  const words = operands.filter((word) => word !== "--")
  if (command === "version" && words.length === 0) return ["--version"]
  return command === "help" && !words.some((word) => helpFlags.includes(word)) ? [...words, "--help"] : args
}

/**
 * Reduces a command line with `--help` to the words of the command and `--help`. If there is no such command, removes
 * `--help`, so that the parser reports the unknown word. If `--help` remained, the parser would print the help of the
 * parent command.
 */
const reduceHelp = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const flags = beforeOperands(args)
  if (!flags.some((arg) => helpFlags.includes(arg))) return args
  const { path, isUnknown } = findCommand(rootCommand, flags)
  return isUnknown ? flags.filter((arg) => !helpFlags.includes(arg)) : [...path, "--help"]
}

/** Passes help and the version to `write` if the user requested them. `runCommandLine` reports errors. */
const makePresenter = (write: (text: string) => void): CliOutput.Presenter => ({
  present: (event) =>
    Effect.sync(() => {
      if (event._tag === "Help" && event.reason === "Requested") write(formatHelp(event.helpDoc))
      if (event._tag === "Version") write(formatVersion(event.name, event.version))
    })
})

/**
 * Runs the command line and returns its exit code: 0 for success, 1 if the command failed, and 2 for wrong usage. With
 * `--detailed-exitcode`, 2 can also mean that an import changes something. Requested help and the version go to stdout.
 * A failure is reported on stderr. If `--json` is given, the report is one line of JSON.
 */
export const runCommandLine = (
  runtime: CommandRuntime["Service"],
  args: ReadonlyArray<string>,
  version: string
) => {
  const report = (failure: ExitError) =>
    Effect.as(Console.error(formatFailure(isJsonRequested(args), failure)), failure.exitCode)
  const requested: Array<string> = []
  return Command.runWith(rootCommand, { version })(reduceHelp(replaceByFlags(args))).pipe(
    Effect.provideService(
      CliOutput.Presenter,
      makePresenter((text) => requested.push(`${text}\n`))
    ),
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
    ),
    Effect.andThen(
      Effect.mapError(
        Effect.suspend(() => (requested.length === 0 ? Effect.void : writeOutput(requested.join("")))),
        (error) => toExitError(error, {})
      )
    ),
    Effect.as(0),
    Effect.catchTags({
      ShowHelp: (error) => report(toUsageFailure(rootCommand, error)),
      ExitCode: ({ exitCode }) => Effect.succeed(exitCode),
      ExitError: report
    }),
    Effect.provideService(CommandRuntime, runtime)
  )
}
