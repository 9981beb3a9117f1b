import * as Console from "effect/Console"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import { exportCommand } from "./ExportCommand.ts"
import { json } from "./Flags.ts"
import { handle, handleAndPrint } from "./Handler.ts"
import { importCommand } from "./ImportCommand.ts"
import { keyCommands } from "./KeyCommands.ts"
import { Operations } from "./Operations.ts"
import { userCommands } from "./UserCommands.ts"
import { workspaceCommands } from "./WorkspaceCommands.ts"

const serveCommand = Command.make(
  "serve",
  {},
  handle(() => Effect.flatMap(Operations, ({ serve }) => serve))
).pipe(Command.withDescription("Migrate the database and serve the API"))

const migrateCommand = Command.make(
  "migrate",
  { json },
  handleAndPrint(
    () => Effect.flatMap(Operations, ({ migrate }) => Effect.as(migrate, { migrated: true })),
    () => "The database's schema is up to date"
  )
).pipe(Command.withDescription("Bring the database's schema up to date"))

const rootCommand = Command.make("prompt-retrieval").pipe(
  Command.withDescription("Read-only prompt retrieval over HTTP"),
  Command.withSubcommands([
    serveCommand,
    migrateCommand,
    importCommand,
    exportCommand,
    workspaceCommands,
    userCommands,
    keyCommands
  ])
)

/** Prints requested help to stdout, and help that explains wrong usage to stderr. */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    const formatter = CliOutput.defaultFormatter({ colors: false })
    switch (event._tag) {
      case "Help":
        return event.reason === "Requested"
          ? Console.log(formatter.formatHelpDoc(event.helpDoc))
          : Console.error(formatter.formatHelpDoc(event.helpDoc))
      case "InvalidInvocation":
        return Effect.andThen(
          Console.error(formatter.formatHelpDoc(event.helpDoc)),
          Console.error(formatter.formatErrors(event.errors))
        )
      case "Version":
        return Console.log(formatter.formatVersion(event.name, event.version))
    }
  }
}

/**
 * Runs the command line and returns its exit code: 0 for success, 1 if the command failed, 2 for wrong usage. A failure
 * is reported on stderr.
 */
export const runCommandLine = (
  operations: Operations["Service"],
  args: ReadonlyArray<string>,
  version: string
) =>
  Command.runWith(rootCommand, { version })(args).pipe(
    Effect.as(0),
    Effect.catchTags({
      ShowHelp: () => Effect.succeed(2),
      ExitError: ({ message, exitCode }) => Effect.as(Console.error(`prompt-retrieval: ${message}`), exitCode)
    }),
    Effect.provideService(Operations, operations),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
    )
  )
