import * as Console from "effect/Console"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import { exportCommand } from "./ExportCommand.ts"
import { json } from "./Flags.ts"
import { importCommand } from "./ImportCommand.ts"
import { keyCommands } from "./KeyCommands.ts"
import type { Operations } from "./Operations.ts"
import { print } from "./Output.ts"
import { userCommands } from "./UserCommands.ts"
import { workspaceCommands } from "./WorkspaceCommands.ts"

const makeCommands = (operations: Operations) => {
  const serve = Command.make("serve", {}, () => operations.serve).pipe(
    Command.withDescription("Migrate the database and serve the API")
  )

  const migrate = Command.make(
    "migrate",
    { json },
    Effect.fnUntraced(function* (flags) {
      yield* operations.migrate
      yield* print(flags.json, { migrated: true }, "The database's schema is up to date")
    })
  ).pipe(Command.withDescription("Bring the database's schema up to date"))

  return Command.make("prompt-retrieval").pipe(
    Command.withDescription("Read-only prompt retrieval over HTTP"),
    Command.withSubcommands([
      serve,
      migrate,
      importCommand(operations),
      exportCommand(operations),
      workspaceCommands(operations),
      userCommands(operations),
      keyCommands(operations)
    ])
  )
}

/** Help that was asked for is a result; help that explains wrong usage is an error. */
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
 * Runs the command line (DESIGN.md section 9) and gives its exit code: 0, or 1 when a command failed and said why on
 * stderr, or 2 for wrong usage.
 */
export const runCommandLine = (operations: Operations, args: ReadonlyArray<string>, version: string) =>
  Command.runWith(makeCommands(operations), { version })(args).pipe(
    Effect.as(0),
    Effect.catchTags({
      ShowHelp: () => Effect.succeed(2),
      UsageError: (wrong) => Effect.as(Console.error(`prompt-retrieval: ${wrong.message}`), 2),
      CommandError: (failure) => Effect.as(Console.error(`prompt-retrieval: ${failure.message}`), 1)
    }),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
    )
  )
