import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { makeFirstRowDecoder } from "./connection/RowDecoder.ts"
import { describeSqlError, sqlState } from "./connection/SqlErrors.ts"
import { Database } from "./Database.ts"
import * as initial from "./migrations/0001_initial.ts"
import * as changes from "./migrations/0002_changes.ts"
import * as metadataDepth from "./migrations/0003_metadata_depth.ts"
import * as concurrentWrites from "./migrations/0004_concurrent_writes.ts"
import { decodeTriggers, enableTrigger, findWrongTriggers, repairStatements } from "./Triggers.ts"

interface Migration {
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/** All migrations in their order, numbered from 1. A released migration never changes: some database has run it. */
export const migrations: ReadonlyArray<Migration> = [
  { name: "initial", statements: initial.statements },
  { name: "changes", statements: changes.statements },
  { name: "metadata depth", statements: metadataDepth.statements },
  { name: "concurrent writes", statements: concurrentWrites.statements }
]

/** The database's schema does not fit this program; the message says what to do. */
export interface SchemaMismatch {
  readonly _tag: "SchemaMismatch"
  readonly message: string
}
const SchemaMismatch = (message: string): SchemaMismatch => ({ _tag: "SchemaMismatch", message })

const schemaTooNew = (version: number, latest: number) =>
  SchemaMismatch(
    `the database's schema is version ${version} and this program knows versions up to ${latest}: upgrade the program`
  )
const schemaTooOld = (version: number, latest: number) =>
  SchemaMismatch(`the database's schema is version ${version} and this program needs ${latest}: run migrate`)
const migrationDenied = (error: SqlError) =>
  SchemaMismatch(
    `the database's schema needs a migration, which the server rejected: ${describeSqlError(error)}`
  )
const triggersDenied = (error: SqlError) =>
  SchemaMismatch(
    `some triggers are not enabled as the schema says, and the server refuses to enable them: ${describeSqlError(error)}`
  )

/** The oldest PostgreSQL that has the functions of the migrations and queries. */
const oldestServer = 14

/** Returns the mismatch of a server that is too old. A `server_version_num` is, for example, 130014 for 13.14. */
export const findServerMismatch = (versionNumber: number): SchemaMismatch | undefined => {
  const major = Math.floor(versionNumber / 10_000)
  return major >= oldestServer
    ? undefined
    : SchemaMismatch(
        `the server is PostgreSQL ${major} and this program needs PostgreSQL ${oldestServer} or later: upgrade the server`
      )
}

/** 42501 is a missing privilege, 25006 a read-only server or session. */
const isDenied = (error: unknown): error is SqlError =>
  isSqlError(error) && ["42501", "25006"].includes(sqlState(error))

const table = "prompt_retrieval_migrations"
const selectState = {
  text: `select to_regclass('${table}') is not null as "tableExists",
    current_setting('server_version_num')::int as "serverVersion"`,
  params: []
}
const decodeState = makeFirstRowDecoder(
  Schema.Struct({ tableExists: Schema.Boolean, serverVersion: Schema.Int })
)
const selectVersion = { text: `select coalesce(max(id), 0)::int as version from ${table}`, params: [] }
const decodeVersion = makeFirstRowDecoder(Schema.Struct({ version: Schema.Int }))

/** Reads the number of the last migration that ran; 0 before the first. */
const readSchemaVersion = Effect.gen(function* () {
  const { queryPrompts: query } = yield* Database
  const { tableExists, serverVersion } = decodeState(yield* query(selectState))
  const mismatch = findServerMismatch(serverVersion)
  if (mismatch !== undefined) return yield* Effect.fail(mismatch)
  if (!tableExists) return 0
  return decodeVersion(yield* query(selectVersion)).version
})

/** Makes concurrent migrations wait for each other. Only migrations use this lock number. */
const lock = `select pg_advisory_xact_lock(hashtext('${table}'))`
const createTable = `create table if not exists ${table} (
  id integer primary key,
  name text not null,
  run_at timestamptz(3) not null default now()
)`
const insertMigration = `insert into ${table} (id, name) values ($1, $2)`

const pendingMigrations = (version: number, all: ReadonlyArray<Migration>) =>
  version > all.length
    ? Effect.fail(schemaTooNew(version, all.length))
    : Effect.succeed([...all.entries()].slice(version))

const runPending = (all: ReadonlyArray<Migration>) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql.unsafe(lock)
    yield* sql.unsafe(createTable)
    const { version } = decodeVersion(yield* sql.unsafe(selectVersion.text))
    for (const [index, { name, statements }] of yield* pendingMigrations(version, all)) {
      yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
      yield* sql.unsafe(insertMigration, [index + 1, name])
    }
  })

/** Like `migrate`, with the given migrations. */
export const runMigrations = (
  all: ReadonlyArray<Migration>
): Effect.Effect<void, SchemaMismatch | Unavailable, Database | PgClient.PgClient> =>
  Effect.gen(function* () {
    const pending = yield* pendingMigrations(yield* readSchemaVersion, all)
    if (pending.length === 0) return
    const { transact } = yield* Database
    yield* transact(Effect.catchIf(runPending(all), isDenied, (error) => Effect.fail(migrationDenied(error))))
  })

const restoreChanged = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql.unsafe(lock)
  const changed = decodeTriggers(yield* sql.unsafe(findWrongTriggers.text, findWrongTriggers.params))
  if (changed.length === 0) return
  for (const statement of [...changed.map(enableTrigger), ...repairStatements]) yield* sql.unsafe(statement)
  yield* Effect.logWarning(`${changed.length} triggers were disabled or had the wrong firing mode; corrected`)
})

/**
 * Enables all triggers as the schema says, and does what they may have missed: `pg_restore --disable-triggers` leaves them
 * in other states. Only reads if nothing has changed. Only warns if the server denies the change, so that a service without
 * the privilege, or on a standby, still starts.
 */
const restoreTriggers = Effect.gen(function* () {
  const { queryPrompts: query, transact } = yield* Database
  if (decodeTriggers(yield* query(findWrongTriggers)).length === 0) return
  yield* transact(
    Effect.catchIf(restoreChanged, isDenied, (error) => Effect.fail(triggersDenied(error)))
  ).pipe(Effect.catchTag("SchemaMismatch", ({ message }) => Effect.logWarning(message)))
})

/**
 * Brings the schema to the version of this program. All pending migrations run in one transaction, each once, however many
 * processes start at the same time. Then enables the triggers that are not enabled as the schema says. Only reads if there is
 * nothing to do. Fails if the schema is newer than the program, or if the server denies a migration.
 */
export const migrate = Effect.andThen(runMigrations(migrations), restoreTriggers)

/** Fails unless the schema has the version of this program; changes nothing. */
export const assertSchemaCurrent: Effect.Effect<void, SchemaMismatch | Unavailable, Database> = Effect.gen(
  function* () {
    const version = yield* readSchemaVersion
    const pending = yield* pendingMigrations(version, migrations)
    if (pending.length > 0) return yield* Effect.fail(schemaTooOld(version, migrations.length))
  }
)
