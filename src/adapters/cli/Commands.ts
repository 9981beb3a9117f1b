import { readFile } from "node:fs/promises"
import { buffer } from "node:stream/consumers"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import { Administration } from "../../application/Administration.ts"
import type { Archive, BadArchive } from "../../application/Archive.ts"
import { CliFailure } from "./CliFailure.ts"
import { exportCommand } from "./ExportCommand.ts"
import { json } from "./Flags.ts"
import { keyCommands } from "./KeyCommands.ts"
import type { Operations } from "./Operations.ts"
import { print, unavailable } from "./Output.ts"
import { userCommands } from "./UserCommands.ts"
import { workspaceCommands } from "./WorkspaceCommands.ts"

const maxFaultsShown = 100

const describeFaults = ({ faults }: BadArchive): CliFailure => {
  const lines = faults
    .slice(0, maxFaultsShown)
    .map(({ path, message }) => `${path === "" ? "the archive" : path}: ${message}`)
  const more = faults.length > maxFaultsShown ? [`… and ${faults.length - maxFaultsShown} more`] : []
  return new CliFailure({
    message: [
      `nothing was imported; the archive has ${faults.length} fault${faults.length === 1 ? "" : "s"}:`,
      ...lines,
      ...more
    ].join("\n")
  })
}

const readArchive = (file: string): Effect.Effect<Uint8Array, CliFailure> =>
  Effect.tryPromise({
    try: () => (file === "-" ? buffer(process.stdin) : readFile(file)),
    catch: (error) => new CliFailure({ message: `can't read ${file}: ${(error as Error).message}` })
  })

const imported = (archive: Archive) => ({
  workspace_id: archive.workspace.id,
  prompts: archive.prompts.length,
  versions: archive.prompts.reduce((sum, prompt) => sum + prompt.versions.length, 0),
  fragments: archive.fragments.length,
  folders: archive.folders.length,
  tags: archive.tags.length,
  users: archive.users.length,
  api_keys: archive.api_keys.length
})

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

  const importArchive = Command.make(
    "import",
    {
      file: Argument.String("file").pipe(
        Argument.withDescription("A workspace archive, or - for standard input")
      ),
      dryRun: Flag.Boolean("dry-run").pipe(
        Flag.withDefault(false),
        Flag.withDescription("Check everything, and change nothing")
      ),
      json
    },
    Effect.fnUntraced(function* ({ file, dryRun, json }) {
      const bytes = yield* readArchive(file)
      const result = yield* Effect.gen(function* () {
        const administration = yield* Administration
        return imported(yield* administration.importArchive(bytes, { dryRun }))
      }).pipe(
        Effect.catchTags({
          BadArchive: (bad) => Effect.fail(describeFaults(bad)),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(operations.administration({ migrate: true }))
      )
      yield* print(
        json,
        result,
        `${dryRun ? "Would import" : "Imported"} ${result.prompts} prompts, ${result.versions} versions and ${result.fragments} fragments into workspace ${result.workspace_id}`
      )
    })
  ).pipe(Command.withDescription("Import a workspace archive, all or nothing"))

  return Command.make("prompt-retrieval").pipe(
    Command.withDescription("Read-only prompt retrieval over HTTP"),
    Command.withSubcommands([
      serve,
      migrate,
      importArchive,
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
      WrongUsage: (wrong) => Effect.as(Console.error(`prompt-retrieval: ${wrong.message}`), 2),
      CliFailure: (failure) => Effect.as(Console.error(`prompt-retrieval: ${failure.message}`), 1)
    }),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
    )
  )
