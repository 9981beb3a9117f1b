import * as Schema from "effect/Schema"
import type { SchemaVersion } from "../../../application/SchemaStatus.ts"
import { makeFirstRowDecoder } from "./connection/RowDecoder.ts"

/**
 * The record of the migrations that ran. Every program refuses a database whose largest id here exceeds the number
 * of migrations that the program knows, also a program that was released before expand migrations existed. The id
 * of a migration is therefore the negative of its number while programs that do not know the migration may run.
 */
export const migrationTable = "prompt_retrieval_migrations"

/** Creates the table unless it exists. */
export const createMigrationTable = `create table if not exists ${migrationTable} (
  id integer primary key,
  name text not null,
  run_at timestamptz(3) not null default now()
)`

/** Makes concurrent migrations wait for each other. Only migrations use this lock number. */
export const lockMigrations = `select pg_advisory_xact_lock(hashtext('${migrationTable}'))`

/** Records that migration number `$1`, with name `$2`, ran. Programs that do not know it may still run. */
export const insertMigration = `insert into ${migrationTable} (id, name) values (-$1::integer, $2)`

/** Excludes the programs that know fewer than `$1` migrations. */
export const excludeOlderPrograms = `update ${migrationTable} set id = -id where id < 0 and id >= -$1::integer`

/** Selects the `SchemaVersion` from the table. */
export const selectSchemaVersion = {
  text: `select coalesce(max(abs(id)), 0)::int as version, coalesce(max(id), 0)::int as "oldestProgram"
    from ${migrationTable}`,
  params: []
}

/** Decodes the row of `selectSchemaVersion`. */
export const decodeSchemaVersion: (rows: ReadonlyArray<unknown>) => SchemaVersion = makeFirstRowDecoder(
  Schema.Struct({ version: Schema.Int, oldestProgram: Schema.Int })
)

/** Selects whether the table exists and may be read, the version of the server, and the role of the connection. */
export const selectServerState = {
  text: `select to_regclass('${migrationTable}') is not null as "tableExists",
    coalesce(has_table_privilege(to_regclass('${migrationTable}'), 'select'), true) as "isReadable",
    current_setting('server_version_num')::int as "serverVersion", current_user::text as role`,
  params: []
}

/** Decodes the row of `selectServerState`. */
export const decodeServerState = makeFirstRowDecoder(
  Schema.Struct({
    tableExists: Schema.Boolean,
    isReadable: Schema.Boolean,
    serverVersion: Schema.Int,
    role: Schema.String
  })
)

/**
 * Selects the role of the connection and the privilege that it lacks to migrate; null if it lacks none of these.
 */
export const selectMissingPrivilege = {
  text: `select current_user::text as role, case
      when current_schema() is null then 'USAGE on a schema of its search_path'
      when not has_schema_privilege(current_schema(), 'create') then 'CREATE on schema ' || current_schema()
      when not pg_has_role((select relowner from pg_class where oid = to_regclass('${migrationTable}')), 'usage')
        then 'ownership of the tables'
    end as privilege`,
  params: []
}

/** Decodes the row of `selectMissingPrivilege`. */
export const decodeMissingPrivilege = makeFirstRowDecoder(
  Schema.Struct({ role: Schema.String, privilege: Schema.NullOr(Schema.String) })
)
