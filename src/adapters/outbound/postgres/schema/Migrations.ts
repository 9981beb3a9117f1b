import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type {
  MigrationInfo,
  MigrationReport,
  SchemaStatus
} from "../../../../application/administration/SchemaStatus.ts"
import { makeStateLog } from "../../../../application/observability/StateLog.ts"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"
import { Database } from "../Database.ts"
import * as record from "./MigrationRecord.ts"
import * as initial from "./migrations/0001_initial.ts"
import {
  migrationDenied,
  migrationRejected,
  type SchemaMismatch,
  schemaTooNew,
  triggersDenied
} from "./SchemaMismatch.ts"
import { readSchemaVersion } from "./SchemaVersion.ts"
import {
  createsTrigger,
  decodeTriggers,
  enableTrigger,
  selectWrongTriggers,
  repairStatements
} from "./Triggers.ts"

interface Migration {
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/**
 * All migrations in their order, numbered from 1. The initial migration may change until the first release. A migration
 * that was released never changes, because databases have run it. `schemaVersion` is their number.
 */
export const migrations: ReadonlyArray<Migration> = [{ name: "initial", statements: initial.statements }]

const toInfo = ({ id, name }: MigrationInfo): MigrationInfo => ({ id, name })

/**
 * PostgreSQL reports 42501 for a missing privilege, 25006 on a read-only server or session, and 3F000 if the search
 * path has no usable schema.
 */
const isDenied = (error: unknown): error is SqlError =>
  isSqlError(error) && ["42501", "25006", "3F000"].includes(sqlState(error))

/**
 * While a migration waits for a lock on a table, requests that read the table wait behind the migration, and time out
 * after 3 s. A migration therefore waits at most 2 s for a lock. Then the migration is rolled back, so that the
 * requests can run, and is tried again.
 */
const limitLockWait = "set local lock_timeout = '2s'"
const lockRetryDelay = "500 millis"

/**
 * Migrations create their functions with `set search_path from current`. Such a function finds tables in the schema of
 * the tables. Without `pg_temp` at the end of the path, the function would find temporary tables of its caller first.
 */
const setSearchPath = `select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`

/** PostgreSQL reports 55P03 when `lock_timeout` ends the wait for a lock. */
const isLockTimeout = (error: unknown): boolean => isSqlError(error) && sqlState(error) === "55P03"

/** Returns the migrations of `all` that have not run. Fails if the schema is newer than the last migration of `all`. */
const findPending = (version: number, all: ReadonlyArray<Migration>) =>
  version > all.length
    ? Effect.fail(schemaTooNew(version, all.length))
    : Effect.succeed(all.map((migration, index) => ({ ...migration, id: index + 1 })).slice(version))

const runPending = Effect.fnUntraced(function* (all: ReadonlyArray<Migration>) {
  const sql = yield* PgClient.PgClient
  yield* sql.unsafe(record.lockMigrations)
  yield* sql.unsafe(limitLockWait)
  yield* sql.unsafe(record.createMigrationTable)
  yield* sql.unsafe(setSearchPath)
  const before = record.decodeSchemaVersion(yield* sql.unsafe(record.selectSchemaVersion.text))
  const pending = yield* findPending(before, all)
  for (const { id, name, statements } of pending) {
    yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
    yield* sql.unsafe(record.insertMigration, [id, name])
  }
  return { version: all.length, ran: pending.map(toInfo) }
})

const MigrationDenied = (error: SqlError) => ({ _tag: "MigrationDenied", error }) as const

/** Fails with the privilege that the role of the connection lacks, or with the server's reason. */
const explainDenial = Effect.fnUntraced(function* ({ error }: ReturnType<typeof MigrationDenied>) {
  const reason = describeSqlError(error)
  if (sqlState(error) === "25006") return yield* Effect.fail(migrationRejected(reason))
  const { queryPrompts: query } = yield* Database
  const { role, privilege } = record.decodeMissingPrivilege(yield* query(record.selectMissingPrivilege))
  return yield* Effect.fail(migrationDenied(role, privilege ?? reason))
})

/** Another transaction holds a lock that a migration needs. */
const TableLocked = { _tag: "TableLocked" } as const

/**
 * Runs the pending migrations in one transaction. Tries again as long as another transaction holds a lock that the
 * migrations need.
 */
const transactPending = Effect.fnUntraced(function* (all: ReadonlyArray<Migration>) {
  const { transact } = yield* Database
  const stateLog = makeStateLog({
    failed: "A migration waits for another transaction to release a table; retrying"
  })
  const attempt: Effect.Effect<MigrationReport, SchemaMismatch | Unavailable, Database | PgClient.PgClient> =
    runPending(all).pipe(
      Effect.mapError((error) =>
        isLockTimeout(error) ? TableLocked : isDenied(error) ? MigrationDenied(error) : error
      ),
      transact,
      Effect.catchTags({
        MigrationDenied: explainDenial,
        TableLocked: () =>
          stateLog.down().pipe(Effect.andThen(Effect.sleep(lockRetryDelay)), Effect.andThen(attempt))
      })
    )
  return yield* attempt
})

/** Like `migrate`, but runs the given migrations and does not check the triggers. */
export const runMigrations = (
  all: ReadonlyArray<Migration>
): Effect.Effect<MigrationReport, SchemaMismatch | Unavailable, Database | PgClient.PgClient> =>
  Effect.gen(function* () {
    const version = yield* readSchemaVersion
    const pending = yield* findPending(version, all)
    return pending.length === 0 ? { version, ran: [] } : yield* transactPending(all)
  })

/** PostgreSQL reports 42883 if the function of a trigger is missing, and 42P01 if the table is missing. */
const isIncomplete = (error: unknown): error is SqlError =>
  isSqlError(error) && ["42883", "42P01"].includes(sqlState(error))

const restoreWrongTriggers = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql.unsafe(record.lockMigrations)
  const wrong = decodeTriggers(yield* sql.unsafe(selectWrongTriggers.text, selectWrongTriggers.params))
  if (wrong.length === 0) return
  const all = migrations.flatMap(({ statements }) => statements)
  const creations = wrong
    .filter(({ isMissing }) => isMissing)
    .flatMap((trigger) => all.findLast((statement) => createsTrigger(statement, trigger)) ?? [])
  for (const statement of [...creations, ...wrong.map(enableTrigger), ...repairStatements])
    yield* sql.unsafe(statement)
  yield* Effect.logWarning(
    `Triggers missing, disabled or with the wrong firing mode: ${wrong.length}; corrected`
  )
})

/**
 * Creates missing triggers, and gives each trigger the firing mode that the schema defines, because `pg_restore
 * --disable-triggers` leaves some triggers in another mode. Also does the work that these triggers may have missed.
 * Changes nothing if all triggers are right. If the server rejects the change, only logs a warning. A service without
 * the privilege, or on a standby, therefore still starts.
 */
const restoreTriggers = Effect.gen(function* () {
  const { queryPrompts: query, transact } = yield* Database
  if (decodeTriggers(yield* query(selectWrongTriggers)).length === 0) return
  yield* transact(
    Effect.catchIf(
      restoreWrongTriggers,
      (error) => isDenied(error) || isIncomplete(error),
      (error) => Effect.fail(triggersDenied(describeSqlError(error)))
    )
  ).pipe(Effect.catchTag("SchemaMismatch", ({ message }) => Effect.logWarning(message)))
})

/**
 * Brings the schema to the version of this program and returns the migrations that ran. All pending migrations run in
 * one transaction. Each migration runs once, even if several processes start at the same time. Then corrects the
 * triggers. Changes nothing if no migration is pending and all triggers are right. Fails if the
 * schema is newer than this program, or if the server denies a migration.
 */
export const migrate = Effect.tap(runMigrations(migrations), restoreTriggers)

/**
 * Returns the version of the schema and the migrations that are pending; changes nothing. Fails if the schema is newer
 * than this program.
 */
export const readSchemaStatus: Effect.Effect<SchemaStatus, SchemaMismatch | Unavailable, Database> =
  Effect.gen(function* () {
    const version = yield* readSchemaVersion
    const pending = yield* findPending(version, migrations)
    return { version, pending: pending.map(toInfo) }
  })
