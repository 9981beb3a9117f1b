import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Completions from "effect/cli/Completions"
import * as Effect from "effect/Effect"
import { versionText } from "../../../../application/ProgramVersion.ts"
import type {
  MigrationInfo,
  MigrationReport,
  SchemaStatus
} from "../../../../application/ports/SchemaStatus.ts"
import { handle, withHelp } from "../CommandBuilders.ts"
import { CommandOperations } from "../CommandOperations.ts"
import { serveVariables, Variables } from "../input/Environment.ts"
import { booleanFlag, json } from "../input/Flags.ts"
import { CommandError } from "../output/CommandError.ts"
import { print, Stdout } from "../output/Output.ts"

export const serveCommand = Command.make(
  "serve",
  { demo: booleanFlag("demo", "Create a demo workspace if the embedded database has no workspace") },
  (options) => Effect.flatMap(CommandOperations, ({ serve }) => serve(options))
).pipe(
  Command.withDescription("Migrate the database and serve the API"),
  Command.annotate(Variables, serveVariables),
  Command.withExamples([
    { command: "prompt-retrieval serve" },
    { command: "prompt-retrieval serve --demo" },
    { command: "DATABASE_URL=postgres://user:password@host/database PORT=8080 prompt-retrieval serve" }
  ])
)

const formatMigration = ({ id, name }: MigrationInfo): string => `${id}, ${name}`

const formatReport = ({ version, ran }: MigrationReport): string =>
  ran.length === 0
    ? `The schema is up to date (version ${version})`
    : ran.map((migration) => `Ran ${formatMigration(migration)}`).join("\n")

const formatStatus = ({ version, pending }: SchemaStatus): string =>
  [
    `Schema version: ${version}`,
    pending.length === 0 ? "Pending migrations: none" : "Pending migrations:",
    ...pending.map((migration) => `  ${formatMigration(migration)}`)
  ].join("\n")

export const migrateCommand = Command.make(
  "migrate",
  {
    status: booleanFlag(
      "status",
      "Show the schema's version and the pending migrations without running them; exit with 1 if any is pending"
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ status }) {
      const { migrate, schemaStatus } = yield* CommandOperations
      if (!status) {
        const report = yield* migrate
        return yield* print({ migrated: true, ...report }, formatReport(report))
      }
      const found = yield* schemaStatus
      yield* print(found, formatStatus(found))
      if (found.pending.length > 0)
        return yield* new CommandError({
          message: `the schema is not up to date (pending: ${found.pending.length}); run 'prompt-retrieval migrate'`
        })
    })
  )
).pipe(withHelp("Bring the database's schema up to date", "migrate", "migrate --status"))

/** The command `help`, which `runCommandLine` replaces with the flag `--help`. */
export const helpCommand = Command.make(
  "help",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("Words of the command, such as keys issue"),
      Argument.variadic()
    )
  },
  () => Effect.void
).pipe(withHelp("Show the help of a command, as --help does", "help keys issue"))

export const versionCommand = Command.make("version", {}, () =>
  Effect.flatMap(Stdout, (write) => write(`${versionText}\n`))
).pipe(Command.withDescription("Show the version, as --version does"))

/** Makes the command `completion`. `getRoot` returns the root command, which contains this command. */
export const makeCompletionCommand = (getRoot: () => Command.Command.Any) =>
  Command.make(
    "completion",
    {
      shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
        Argument.withDescription("Shell that runs the script: bash, zsh or fish")
      )
    },
    ({ shell }) => {
      const root = getRoot()
      const script = Completions.generate(root.name, shell, Completions.fromCommand(root))
      // The instructions in the generated script use a flag that this program does not have.
      const text = script.replaceAll(`${root.name} --completions`, `${root.name} completion`)
      return Effect.flatMap(Stdout, (write) => write(`${text}\n`))
    }
  ).pipe(
    withHelp(
      "Print a script that completes commands and flags in a shell",
      "completion bash >> ~/.bashrc",
      'completion zsh > "$fpath[1]/_prompt-retrieval"',
      "completion fish > ~/.config/fish/completions/prompt-retrieval.fish"
    )
  )
