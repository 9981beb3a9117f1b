import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isConstraintViolation, stagedTablePrefix, toInvalidContent } from "./ConstraintViolation.ts"
import { batchRows, fromText, setWorkspace, toParams } from "./BatchRows.ts"
import { type ImportTable, importColumns, importTables, spooledColumns } from "./ContentTables.ts"
import type { RowSpool } from "./RowSpool.ts"

/**
 * Returns the table expression of an import's rows for a table. No other connection sees the rows, and reading them
 * locks nothing.
 */
export type FromStaged = (table: ImportTable) => string

/** The rows of an import, where the statements of its transaction find them. */
export interface StagedRows {
  readonly from: FromStaged
  /** The tables that have any row. */
  readonly tables: ReadonlyArray<ImportTable>
}

/** The largest import that is staged in settings, in bytes. */
const maxBytesInSettings = 128 * 1024

/** Selects no rows, for statements that also run when a table has no staged rows. */
const fromNothing: FromStaged = (table) =>
  `(select ${Object.entries(importColumns[table]).map(([name, type]) => `null::${type} as ${name}`)} where false)`

/** The columns of the staged rows. */
const stagedColumns = (table: ImportTable): ReadonlyArray<string> => [
  ...Object.keys(importColumns[table]),
  "path",
  "ordinal"
]

/** The expressions for `stagedColumns` of a row `r` with texts. */
const stagedValues = (table: ImportTable): ReadonlyArray<string> => [
  ...Object.entries(importColumns[table]).map(([name, type]) => fromText(table, name, type)),
  "r.path",
  "r.ordinal"
]

/** The columns of the texts in a setting. */
const settingColumns = (table: ImportTable): string =>
  [...spooledColumns(table).map((name) => `${name} text`), "ordinal integer"].join(", ")

/** Rows in settings of the transaction, for small imports: ten temporary tables cost more than the rest of the import. */
const fromSettings: FromStaged = (table) =>
  `(select ${stagedValues(table).map((value, index) => `${value} as ${stagedColumns(table)[index]}`)}
    from json_to_recordset(current_setting('prompt_retrieval.staged_${table}')::json) r (${settingColumns(table)}))`

const setSetting = (table: ImportTable): string =>
  `select set_config('prompt_retrieval.staged_${table}', (select json_agg(r)::text from ${batchRows(table)}), true)`

/** Rows in temporary tables, for imports of any size. */
const fromTables: FromStaged = (table) => `pg_temp.${stagedTablePrefix}${table}`

/**
 * Creates the temporary table for a table, with the same CHECK constraints. Emails are unique as in `users`, because
 * PostgreSQL's lower case decides; all other uniqueness was checked by the archive's reader.
 */
const createTable = (table: ImportTable): string => `
  create temporary table ${stagedTablePrefix}${table} (
    like ${table} including constraints including defaults, path text, ordinal integer
  ) on commit drop;
  ${table === "users" ? `create unique index users_email on ${fromTables("users")} (lower(email));` : ""}`

const createTables = (tables: ReadonlyArray<ImportTable>): string =>
  `do $$ begin ${tables.map(createTable).join("")} end $$`

const insertRows = (table: ImportTable): string =>
  `insert into ${fromTables(table)} (${stagedColumns(table)}) select ${stagedValues(table)} from ${batchRows(table)}`

/** Analyzes the columns that statements join on, which suffices to plan them. */
const analyzeTables = (tables: ReadonlyArray<ImportTable>): string =>
  `analyze ${tables.map(
    (table) => `${fromTables(table)} (${table === "prompt_tags" ? "prompt_id, tag_id" : "id"})`
  )}`

/** Runs a statement for each batch of some tables. */
const forEachBatch = Effect.fnUntraced(function* (
  sql: PgClient,
  spool: RowSpool,
  tables: ReadonlyArray<ImportTable>,
  text: (table: ImportTable) => string
) {
  for (const table of tables) {
    yield* spool.forEachBatch(table, (batch) => sql.unsafe(text(table), toParams(batch)))
  }
})

const stageInTables = Effect.fnUntraced(
  function* (sql: PgClient, spool: RowSpool, tables: ReadonlyArray<ImportTable>) {
    yield* sql.unsafe(createTables(tables))
    yield* forEachBatch(sql, spool, tables, insertRows)
    yield* sql.unsafe(analyzeTables(tables))
  },
  Effect.catchIf(isConstraintViolation, (error) => Effect.fail(toInvalidContent(error)))
)

/**
 * Stages the rows of some tables for the current transaction, as content of the workspace. A dry run uses temporary tables whatever the size,
 * because only their constraints find the values that a table cannot store.
 */
export const stageRows = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: string,
  spool: RowSpool,
  dryRun: boolean,
  from: ReadonlyArray<ImportTable> = importTables
) {
  const tables = from.filter(spool.has)
  const stagedIn = (from: FromStaged): StagedRows => ({
    from: (table) => (tables.includes(table) ? from(table) : fromNothing(table)),
    tables
  })
  if (tables.length === 0) return stagedIn(fromNothing)
  yield* sql.unsafe(setWorkspace, [workspace])
  if (!dryRun && spool.countBytes(tables) <= maxBytesInSettings) {
    yield* forEachBatch(sql, spool, tables, setSetting)
    return stagedIn(fromSettings)
  }
  yield* stageInTables(sql, spool, tables)
  return stagedIn(fromTables)
})
