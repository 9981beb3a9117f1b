import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../application/Unavailable.ts"
import { Database, reasonOf, sqlState } from "./Database.ts"
import * as initial from "./Migrations/0001_initial.ts"
import * as changes from "./Migrations/0002_changes.ts"
import * as metadataDepth from "./Migrations/0003_metadata_depth.ts"
import * as concurrentWrites from "./Migrations/0004_concurrent_writes.ts"

interface Migration {
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/** In their order, numbered from 1. Only ever added to: what was released is run somewhere. */
export const migrations: ReadonlyArray<Migration> = [
  { name: "initial", statements: initial.statements },
  { name: "changes", statements: changes.statements },
  { name: "metadata depth", statements: metadataDepth.statements },
  { name: "concurrent writes", statements: concurrentWrites.statements }
]

/** The tables are not as this program needs them; the message says what to do. */
export interface SchemaMismatch {
  readonly _tag: "SchemaMismatch"
  readonly message: string
}
const SchemaMismatch = (message: string): SchemaMismatch => ({ _tag: "SchemaMismatch", message })

const newer = (version: number, known: number) =>
  SchemaMismatch(
    `the database's schema is version ${version} and this program knows versions up to ${known}: upgrade the program`
  )
const older = (version: number, known: number) =>
  SchemaMismatch(`the database's schema is version ${version} and this program needs ${known}: run migrate`)
const denied = (error: SqlError) =>
  SchemaMismatch(`the database's schema needs migrating, which the server refuses: ${reasonOf(error)}`)

/** The oldest PostgreSQL whose functions the migrations and queries use. */
const oldestServer = 14

/** Refuses a server by its `server_version_num`, such as 130014 for 13.14. */
export const serverMismatch = (versionNumber: number): SchemaMismatch | undefined => {
  const major = Math.floor(versionNumber / 10_000)
  return major >= oldestServer
    ? undefined
    : SchemaMismatch(
        `the server is PostgreSQL ${major} and this program needs PostgreSQL ${oldestServer} or later: upgrade the server`
      )
}

/** 42501 is a missing right, 25006 a server or session that only reads. */
const isDenied = (error: unknown): error is SqlError =>
  isSqlError(error) && ["42501", "25006"].includes(sqlState(error))

const table = "prompt_retrieval_migrations"
const isThere = {
  text: `select to_regclass('${table}') is not null as yes, current_setting('server_version_num')::int as server`,
  params: []
}
const latest = { text: `select coalesce(max(id), 0)::int as version from ${table}`, params: [] }

/** The number of the last migration that was run, 0 before the first. */
const versionOfSchema = Effect.gen(function* () {
  const { read } = yield* Database
  const [there] = yield* read(isThere)
  const mismatch = serverMismatch(there!.server as number)
  if (mismatch !== undefined) return yield* Effect.fail(mismatch)
  if (there!.yes !== true) return 0
  const [row] = yield* read(latest)
  return row?.version as number
})

/** Processes that start at once wait for each other at the lock, whose number is this table's alone. */
const lock = `select pg_advisory_xact_lock(hashtext('${table}'))`
const createTable = `create table if not exists ${table} (
  id integer primary key,
  name text not null,
  run_at timestamptz(3) not null default now()
)`

const pendingAt = (version: number, all: ReadonlyArray<Migration>) =>
  version > all.length
    ? Effect.fail(newer(version, all.length))
    : Effect.succeed([...all.entries()].slice(version))

const runPending = (all: ReadonlyArray<Migration>) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql.unsafe(lock)
    yield* sql.unsafe(createTable)
    const [row] = yield* sql.unsafe<{ readonly version: number }>(latest.text)
    for (const [index, { name, statements }] of yield* pendingAt(row!.version, all)) {
      yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
      yield* sql.unsafe(`insert into ${table} (id, name) values ($1, $2)`, [index + 1, name])
    }
  })

/** As `migrate`, with these migrations. */
export const migrateTo = (
  all: ReadonlyArray<Migration>
): Effect.Effect<void, SchemaMismatch | Unavailable, Database | PgClient.PgClient> =>
  Effect.gen(function* () {
    const pending = yield* pendingAt(yield* versionOfSchema, all)
    if (pending.length === 0) return
    const { transact } = yield* Database
    yield* transact(Effect.catchIf(runPending(all), isDenied, (error) => Effect.fail(denied(error))))
  })

/**
 * Brings the tables to what this program needs: each migration once, all in one transaction, however many processes
 * start at once. With nothing to run it only reads. Fails where the schema is newer than the program, or where it
 * may not be changed.
 */
export const migrate = migrateTo(migrations)

/** Fails unless the schema is the one that this program needs; changes nothing. */
export const requireCurrent: Effect.Effect<void, SchemaMismatch | Unavailable, Database> = Effect.gen(
  function* () {
    const version = yield* versionOfSchema
    const pending = yield* pendingAt(version, migrations)
    if (pending.length > 0) return yield* Effect.fail(older(version, migrations.length))
  }
)
