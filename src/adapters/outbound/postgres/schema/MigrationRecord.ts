import * as Schema from "effect/Schema"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"

export const migrationTable = "prompt_retrieval_migrations"

export const createMigrationTable = `create table if not exists ${migrationTable} (
  id integer primary key,
  name text not null,
  run_at timestamptz(3) not null default now()
)`

/**
 * Takes the lock that makes concurrent migrations and trigger corrections run one after another. Nothing else uses this
 * lock.
 */
export const lockMigrations = `select pg_advisory_xact_lock(hashtext('${migrationTable}'))`

export const insertMigration = `insert into ${migrationTable} (id, name) values ($1, $2)`

/** Selects the number of the last migration that ran; 0 if no migration has run. */
export const selectSchemaVersion = {
  text: `select coalesce(max(id), 0) as version from ${migrationTable}`,
  params: []
}

const decodeVersionRow = makeFirstRowDecoder(Schema.Struct({ version: Schema.Int }))

export const decodeSchemaVersion = (rows: ReadonlyArray<unknown>): number => decodeVersionRow(rows).version

/**
 * Selects whether the table of migrations exists, whether the role may read the table, the version of the server, and
 * the role of the connection.
 */
export const selectServerState = {
  text: `select to_regclass('${migrationTable}') is not null as "tableExists",
    coalesce(has_table_privilege(to_regclass('${migrationTable}'), 'select'), true) as "isReadable",
    current_setting('server_version_num')::int as "serverVersion", current_user::text as role`,
  params: []
}

export const decodeServerState = makeFirstRowDecoder(
  Schema.Struct({
    tableExists: Schema.Boolean,
    isReadable: Schema.Boolean,
    serverVersion: Schema.Int,
    role: Schema.String
  })
)

/**
 * Selects the role of the connection, and the first privilege that a migration needs and the role lacks. The privilege
 * is null if the role lacks none.
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

export const decodeMissingPrivilege = makeFirstRowDecoder(
  Schema.Struct({ role: Schema.String, privilege: Schema.NullOr(Schema.String) })
)
