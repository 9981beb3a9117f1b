import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type {
  MigrationInfo,
  MigrationReport,
  SchemaStatus
} from "../../../../application/administration/SchemaStatus.ts"
import { CommandError } from "../output/CommandError.ts"
import type { CommandInput } from "../output/ExitError.ts"
import { booleanFlag, json } from "../input/Flags.ts"
import { handle } from "../CommandHandler.ts"
import { CommandRuntime } from "../CommandRuntime.ts"
import { print } from "../output/Output.ts"

const formatMigration = ({ id, name }: MigrationInfo): string => `${id}, ${name}`

const formatReport = ({ version, ran }: MigrationReport): string =>
  ran.length === 0
    ? `The schema is up to date (version ${version})`
    : ran.map((migration) => `Ran ${formatMigration(migration)}`).join("\n")

const migrateSchema = Effect.fnUntraced(function* (asJson: boolean) {
  const { migrate } = yield* CommandRuntime
  const report = yield* migrate
  yield* print(asJson, { migrated: true, ...report }, formatReport(report))
})

const formatStatus = ({ version, pending }: SchemaStatus): string =>
  [
    `Schema version: ${version}`,
    `Pending migrations: ${pending.length === 0 ? "none" : ""}`.trimEnd(),
    ...pending.map((migration) => `  ${formatMigration(migration)}`)
  ].join("\n")

/** Prints the status. Fails if a migration is pending, so that scripts can use the exit code. */
const printStatus = Effect.fnUntraced(function* (asJson: boolean) {
  const { schemaStatus } = yield* CommandRuntime
  const status = yield* schemaStatus
  yield* print(asJson, status, formatStatus(status))
  const pending = status.pending.length
  if (pending > 0)
    return yield* new CommandError({
      message: `the schema is not up to date (pending: ${pending}); run 'prompt-retrieval migrate'`
    })
})

interface MigrateInput extends CommandInput {
  readonly status: boolean
  readonly json: boolean
}

export const migrateCommand = Command.make(
  "migrate",
  {
    status: booleanFlag(
      "status",
      "Show the schema's version and the pending migrations without running them; exit with 1 if any is pending"
    ),
    json
  },
  handle(({ status, json }: MigrateInput) => (status ? printStatus(json) : migrateSchema(json)))
).pipe(
  Command.withDescription("Bring the database's schema up to date"),
  Command.withExamples([
    { command: "prompt-retrieval migrate" },
    { command: "prompt-retrieval migrate --status" }
  ])
)
