import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isConstraintViolation, stagedTablePrefix, toInvalidContent } from "./ConstraintViolation.ts"
import { type ImportTable, importColumns, importTables } from "./ContentTables.ts"
import type { RowSpool } from "./RowSpool.ts"

/**
 * Returns the table expression of an import's rows for a table. No other connection sees the rows, and reading them locks
 * nothing.
 */
export type FromStaged = (table: ImportTable) => string

/** The rows of an import, where the statements of its transaction find them. */
export interface StagedRows {
  readonly from: FromStaged
  /** The tables that have any row. */
  readonly tables: ReadonlyArray<ImportTable>
}

/** The longest import that is staged in settings, in characters of JSON. */
const maxLengthInSettings = 128 * 1024

const columnDefinitions = (table: ImportTable): string =>
  [...Object.entries(importColumns[table]), ["path", "text"], ["place", "integer"]]
    .map((column) => column.join(" "))
    .join(", ")

/** Returns the columns of a row in JSON, where a hash is hexadecimal. */
const jsonColumns = (table: ImportTable): ReadonlyArray<string> =>
  [...Object.keys(importColumns[table]), "path", "place"].map((name) =>
    name === "key_hash" ? "decode(key_hash, 'hex') as key_hash" : name
  )

/** Selects no rows, for statements that also run when a table has no staged rows. */
const fromNothing: FromStaged = (table) =>
  `(select ${Object.entries(importColumns[table]).map(([name, type]) => `null::${type} as ${name}`)} where false)`

/** Rows in settings of the transaction, for small imports: ten temporary tables cost more than the rest of the import. */
const fromSettings: FromStaged = (table) =>
  `(select ${jsonColumns(table)}
    from json_to_recordset(current_setting('prompt_retrieval.staged_${table}')::json) r (${columnDefinitions(table)}))`

const setSettings = (tables: ReadonlyArray<ImportTable>): string =>
  `select ${tables.map((table, index) => `set_config('prompt_retrieval.staged_${table}', $${index + 1}, true)`)}`

/** Rows in temporary tables, for imports of any size. */
const fromTables: FromStaged = (table) => `pg_temp.${stagedTablePrefix}${table}`

/**
 * Creates the temporary table for a table, with the same CHECK constraints. Emails are unique as in `users`, because
 * PostgreSQL's lower case decides; all other uniqueness was checked by the archive's reader.
 */
const createTable = (table: ImportTable): string => `
  create temporary table ${stagedTablePrefix}${table} (
    like ${table} including constraints including defaults, path text, place integer
  ) on commit drop;
  ${table === "users" ? `create unique index users_email on ${fromTables("users")} (lower(email));` : ""}`

const createTables = (tables: ReadonlyArray<ImportTable>): string =>
  `do $$ begin ${tables.map(createTable).join("")} end $$`

const insertRows = (table: ImportTable): string =>
  `insert into ${fromTables(table)} (${Object.keys(importColumns[table])}, path, place)
    select ${jsonColumns(table)} from json_to_recordset($1::json) r (${columnDefinitions(table)})`

/** Analyzes the columns that statements join on, which suffices to plan them. */
const analyzeTables = (tables: ReadonlyArray<ImportTable>): string =>
  `analyze ${tables.map(
    (table) => `${fromTables(table)} (${table === "prompt_tags" ? "prompt_id, tag_id" : "id"})`
  )}`

const stageInSettings = Effect.fnUntraced(function* (
  sql: PgClient,
  spool: RowSpool,
  tables: ReadonlyArray<ImportTable>
) {
  const texts = new Map<ImportTable, string>()
  yield* spool.forEachBatch(({ table, json }) => Effect.sync(() => texts.set(table, json)))
  yield* sql.unsafe(
    setSettings(tables),
    tables.map((table) => texts.get(table))
  )
})

const stageInTables = Effect.fnUntraced(
  function* (sql: PgClient, spool: RowSpool, tables: ReadonlyArray<ImportTable>) {
    yield* sql.unsafe(createTables(tables))
    yield* spool.forEachBatch(({ table, json }) => sql.unsafe(insertRows(table), [json]))
    yield* sql.unsafe(analyzeTables(tables))
  },
  Effect.catchIf(isConstraintViolation, (error) => Effect.fail(toInvalidContent(error)))
)

/**
 * Stages the rows of a spool for the current transaction. A dry run uses temporary tables whatever the size, because only
 * their constraints find the values that a table cannot store.
 */
export const stageRows = Effect.fnUntraced(function* (sql: PgClient, spool: RowSpool, dryRun: boolean) {
  const tables = importTables.filter(spool.has)
  const stagedIn = (from: FromStaged): StagedRows => ({
    from: (table) => (spool.has(table) ? from(table) : fromNothing(table)),
    tables
  })
  if (tables.length === 0) return stagedIn(fromNothing)
  if (!dryRun && spool.length() <= maxLengthInSettings) {
    yield* stageInSettings(sql, spool, tables)
    return stagedIn(fromSettings)
  }
  yield* stageInTables(sql, spool, tables)
  return stagedIn(fromTables)
})
