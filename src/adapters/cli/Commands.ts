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
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Administration } from "../../application/Administration.ts"
import type { Archive, BadArchive } from "../../application/Archive.ts"
import { WorkspaceId } from "../../domain/Prompt.ts"
import { parseUuid } from "../../domain/Uuid.ts"
import { CliFailure } from "./CliFailure.ts"

/** What the commands act through; whoever starts the command line supplies it. */
export interface Operations {
  /** Serves until the process is told to stop. */
  readonly serve: Effect.Effect<void, CliFailure>
  /** Brings the database's schema up to date. */
  readonly migrate: Effect.Effect<void, CliFailure>
  /** The administration of a database whose schema is up to date; `migrate` brings it there first. */
  readonly administration: (options: { readonly migrate: boolean }) => Layer.Layer<Administration, CliFailure>
}

const unavailable = () => new CliFailure({ message: "the database can't be reached" })

const json = Flag.Boolean("json").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Print the result as JSON")
)

const workspace = Flag.String("workspace").pipe(
  Flag.withDescription("Id of the workspace"),
  Flag.withSchema(
    Schema.String.check(
      Schema.makeFilter((text: string) => (parseUuid(text) === undefined ? "must be a UUID" : undefined))
    )
  ),
  Flag.map((text) => WorkspaceId.make(parseUuid(text)!))
)

/** The result of a command: a line for people, or the value for scripts. */
const print = (asJson: boolean, value: unknown, text: string) =>
  Console.log(asJson ? JSON.stringify(value) : text)

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
      json
    },
    Effect.fnUntraced(function* ({ file, json }) {
      const bytes = yield* readArchive(file)
      const result = yield* Effect.gen(function* () {
        const administration = yield* Administration
        return imported(yield* administration.importArchive(bytes))
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
        `Imported ${result.prompts} prompts, ${result.versions} versions and ${result.fragments} fragments into workspace ${result.workspace_id}`
      )
    })
  ).pipe(Command.withDescription("Import a workspace archive, all or nothing"))

  const issue = Command.make(
    "issue",
    {
      workspace,
      user: Flag.String("user").pipe(
        Flag.withDescription("Email of the key's owner; an unknown one becomes a user"),
        Flag.withSchema(
          Schema.String.check(
            Schema.isPattern(/^[^\s@]+@[^\s@]+$/, { message: "must be an email address" }),
            Schema.isMaxLength(256)
          )
        )
      ),
      name: Flag.String("name").pipe(Flag.optional, Flag.withDescription("What the key is for")),
      json
    },
    Effect.fnUntraced(function* ({ workspace, user, name, json }) {
      const issued = yield* Effect.gen(function* () {
        const administration = yield* Administration
        return yield* administration.issueKey(
          workspace,
          user,
          Option.getOrElse(name, () => "")
        )
      }).pipe(
        Effect.catchTags({
          WorkspaceNotFound: () =>
            Effect.fail(new CliFailure({ message: `there is no workspace ${workspace}` })),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(operations.administration({ migrate: false }))
      )
      yield* print(
        json,
        issued,
        `${issued.key}\n\nThis key is shown only now: put it where your application reads its secrets, such as an environment variable.\nSend it as: Authorization: Bearer <key>`
      )
    })
  ).pipe(Command.withDescription("Issue an API key and print it, this once"))

  const keys = Command.make("keys").pipe(
    Command.withDescription("Issue API keys"),
    Command.withSubcommands([issue])
  )

  return Command.make("prompt-retrieval").pipe(
    Command.withDescription("Read-only prompt retrieval over HTTP"),
    Command.withSubcommands([serve, migrate, importArchive, keys])
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
      CliFailure: (failure) => Effect.as(Console.error(`prompt-retrieval: ${failure.message}`), 1)
    }),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
    )
  )
