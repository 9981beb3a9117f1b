import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SchemaStatus } from "../../../../application/ports/SchemaStatus.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { Database } from "../Database.ts"

/**
 * The names of all migrations in their order, numbered from 1. The number of migrations is the version of the schema.
 * `Migrations.ts` has their statements, which an embedder does not load.
 */
export const migrationNames = ["initial"] as const

/** The oldest supported major version of PostgreSQL. Older versions lack functions that migrations and queries call. */
const oldestServer = 14

/** This program cannot use the database's server or schema. The message gives a remedy or the server's reason. */
export class SchemaMismatch extends Data.TaggedError("SchemaMismatch")<{ readonly message: string }> {}

export const migrationTable = "prompt_retrieval_migrations"

/** Selects the number of the last migration that ran; 0 if no migration has run. */
export const selectVersion = `select coalesce(max(id), 0) as version from ${migrationTable}`

const decodeVersion = Schema.decodeUnknownSync(Schema.Struct({ version: Schema.Int }))

/** Decodes the row of `selectVersion`. Fails if the version exceeds `latest`, the version of the program's schema. */
export const toKnownVersion = Effect.fnUntraced(function* (rows: ReadonlyArray<unknown>, latest: number) {
  const { version } = decodeVersion(rows[0])
  if (version <= latest) return version
  return yield* new SchemaMismatch({
    message: `the database's schema is version ${version} and this program knows versions up to ${latest}: upgrade the program`
  })
})

const decodeServerState = Schema.decodeUnknownSync(
  Schema.Struct({ serverVersion: Schema.Int, hasTable: Schema.Boolean })
)

/**
 * Returns the version of the database's schema; 0 before the first migration. Fails if the server is too old, or if the
 * version exceeds `latest`, the version of the program's schema.
 */
export const readSchemaVersion = Effect.fnUntraced(function* (latest: number) {
  const { queryReads: query } = yield* Database
  const [row] = yield* query({
    text: `select current_setting('server_version_num')::int as "serverVersion",
      to_regclass('${migrationTable}') is not null as "hasTable"`,
    params: []
  })
  const { serverVersion, hasTable } = decodeServerState(row)
  // The number 130014 means version 13.14.
  const server = Math.floor(serverVersion / 10_000)
  if (server < oldestServer)
    return yield* new SchemaMismatch({
      message: `the server is PostgreSQL ${server} and this program needs PostgreSQL ${oldestServer} or later: upgrade the server`
    })
  return hasTable ? yield* toKnownVersion(yield* query({ text: selectVersion, params: [] }), latest) : 0
})

/** Returns the version of the schema and the pending migrations. Fails if the schema is newer than the program. */
export const readSchemaStatus: Effect.Effect<SchemaStatus, SchemaMismatch | Unavailable, Database> =
  Effect.map(readSchemaVersion(migrationNames.length), (version) => ({
    version,
    pending: migrationNames.map((name, index) => ({ id: index + 1, name })).slice(version)
  }))

/** Fails if the schema is newer than this program, or if a migration is pending. Changes nothing. */
export const assertSchemaCurrent = Effect.gen(function* () {
  const { version, pending } = yield* readSchemaStatus
  if (pending.length > 0)
    return yield* new SchemaMismatch({
      message: `the database's schema is version ${version} and this program needs ${migrationNames.length}: run migrate`
    })
})

/**
 * Dies with PostgreSQL's reason if the role of the connection lacks SELECT on a table that requests read. One readable
 * column of a table is enough, because an operator can grant SELECT on single columns.
 */
export const assertReadable: Effect.Effect<void, Unavailable, Database> = Effect.flatMap(
  Database,
  ({ queryReads: query }) =>
    Effect.asVoid(
      query({
        text: `select from workspaces, users, api_keys, folders, tags, prompts, prompt_tags, prompt_versions,
          prompt_fragments, fragments where false`,
        params: []
      })
    )
)
