import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { makeStateLog } from "../../../../application/observability/StateLog.ts"
import type { MigrationInfo, MigrationReport } from "../../../../application/ports/SchemaStatus.ts"
import { Database } from "../Database.ts"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"
import { notifications, promptNotifications } from "./0001_notifications.ts"
import { promptTags } from "./0001_prompt_tags.ts"
import { tables } from "./0001_tables.ts"
import {
  migrationNames,
  migrationTable,
  readSchemaVersion,
  SchemaMismatch,
  selectVersion,
  toKnownVersion
} from "./SchemaVersion.ts"
import { findTriggerModes, makeTriggerRepair, selectWrongTriggers } from "./Triggers.ts"

interface Migration {
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/**
 * Splits SQL into statements. Each statement starts at the beginning of a line; lines inside a function are indented.
 */
const splitStatements = (sql: string): ReadonlyArray<string> => sql.trim().split(/;\n+(?=\S)/)

/**
 * All migrations in their order. The text of a migration never changes, because databases have already run the
 * migration. A test compares the hash of the text.
 */
export const migrations: ReadonlyArray<Migration> = [
  {
    name: migrationNames[0],
    statements: [tables, promptTags, notifications, promptNotifications].flatMap(splitStatements)
  }
]

/** Takes the lock that makes concurrent migrations and repairs of triggers run one after another. */
const lockMigrations = `select pg_advisory_xact_lock(hashtext('${migrationTable}'))`

const prepareTransaction = [
  lockMigrations,
  // While a migration waits for a lock on a table, requests that read the table wait behind the migration, and time out
  // after 3 s. A migration therefore waits at most 2 s. Then the transaction rolls back, so that the requests can run,
  // and this program retries the migration.
  "set local lock_timeout = '2s'",
  `create table if not exists ${migrationTable} (
    id integer primary key,
    name text not null,
    run_at timestamptz(3) not null default now()
  )`,
  // Migrations create their functions with `set search_path from current`, so that the functions find the tables in
  // this schema. Without a final `pg_temp`, the functions would find temporary tables of their caller first.
  `select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`
]

const runStatements = (statements: ReadonlyArray<string>) =>
  Effect.flatMap(PgClient.PgClient, (sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  )

const isLockTimeout = (error: unknown): boolean =>
  isSqlError(error) && error.reason._tag === "LockTimeoutError"

/**
 * Returns true if the role lacks a privilege (42501), the server or the session is read-only (25006), the search path
 * has no usable schema (3F000), or a function (42883) or table (42P01) of a trigger is missing.
 */
const isRejected = (error: unknown): error is SqlError =>
  isSqlError(error) && ["42501", "25006", "3F000", "42883", "42P01"].includes(sqlState(error))

/**
 * Runs the pending migrations in one transaction and returns them. Retries while another transaction blocks a table.
 */
const runPending = Effect.fnUntraced(function* (all: ReadonlyArray<Migration>) {
  const { transact, handleSqlErrors } = yield* Database
  const sql = yield* PgClient.PgClient
  const stateLog = makeStateLog({
    failed: "A migration waits for another transaction to release a table; retrying"
  })
  const work = Effect.gen(function* () {
    yield* runStatements(prepareTransaction)
    // While this transaction waited for the lock, a newer program may have migrated the database.
    const version = yield* toKnownVersion(yield* sql.unsafe(selectVersion), all.length)
    const ran: Array<MigrationInfo> = []
    for (const { name, statements } of all.slice(version)) {
      const id = version + ran.length + 1
      yield* runStatements(statements)
      yield* sql`insert into ${sql(migrationTable)} (id, name) values (${id}, ${name})`
      ran.push({ id, name })
    }
    return ran
  })
  return yield* transact("read committed", work).pipe(
    Effect.tapError((error) => (isLockTimeout(error) ? stateLog.down() : Effect.void)),
    Effect.retry({ while: isLockTimeout, schedule: Schedule.spaced("500 millis") }),
    Effect.catchIf(
      isRejected,
      (error) =>
        new SchemaMismatch({
          message: `the database's schema needs a migration, which the server rejected: ${describeSqlError(error)}`
        })
    ),
    handleSqlErrors
  )
})

/**
 * Repairs the triggers if some are missing or have the wrong mode, as after `pg_restore --disable-triggers`. If the
 * server rejects the repair, logs a warning and succeeds, so that a service still starts without the privilege or on a
 * standby.
 */
const restoreTriggers = Effect.fnUntraced(function* (all: ReadonlyArray<Migration>) {
  const { queryReads: query, transact, handleSqlErrors } = yield* Database
  const statements = all.flatMap((migration) => migration.statements)
  const wrong = yield* query(selectWrongTriggers(findTriggerModes(statements)))
  if (wrong.length === 0) return
  yield* transact("read committed", runStatements([lockMigrations, ...makeTriggerRepair(statements)])).pipe(
    Effect.andThen(
      Effect.logWarning(
        `Triggers missing, disabled or with the wrong firing mode: ${wrong.length}; corrected`
      )
    ),
    Effect.catchIf(isRejected, (error) =>
      Effect.logWarning(
        `some triggers are missing or have the wrong firing mode, and the server rejected the correction: ${describeSqlError(error)}; run migrate as the owner of the tables`
      )
    ),
    handleSqlErrors
  )
})

/** Implements `migrate` for a given list of migrations. */
export const runMigrations = Effect.fnUntraced(function* (all: ReadonlyArray<Migration>) {
  const version = yield* readSchemaVersion(all.length)
  const ran = version < all.length ? yield* runPending(all) : []
  yield* restoreTriggers(all)
  return { version: all.length, ran } satisfies MigrationReport
})

/**
 * Brings the schema to the version of this program, repairs the triggers, and returns the migrations that ran. All
 * pending migrations run in one transaction. If several processes start at the same time, each migration runs only
 * once. Fails if the schema is newer than this program, or if the server rejects a migration.
 */
export const migrate = runMigrations(migrations)
