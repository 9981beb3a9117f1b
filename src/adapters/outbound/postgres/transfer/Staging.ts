import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { InvalidContent } from "../../../../domain/workspace/Problem.ts"
import type { WorkspacePrompt } from "../../../../domain/workspace/Workspace.ts"
import type { WorkspacePart } from "../../../../domain/workspace/WorkspaceParts.ts"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"
import { belongsToWorkspace, type ImportTable, importColumns, importTables } from "./ContentTables.ts"

/**
 * The prefix of the names of the temporary tables. PostgreSQL's messages contain these names instead of the names of
 * the real tables.
 */
const stagedTablePrefix = "prompt_retrieval_staged_"

/** Returns true for errors of class 22 and 23: PostgreSQL cannot store a value, or the value violates a constraint. */
export const isConstraintViolation = (error: unknown): error is SqlError =>
  isSqlError(error) && /^2[23]/.test(sqlState(error))

/** Returns the error for content that violates a constraint which the archive's reader does not check. */
export const toInvalidContent = (error: SqlError): InvalidContent =>
  InvalidContent([
    {
      path: "",
      message: `cannot be stored: ${describeSqlError(error).replaceAll(`"${stagedTablePrefix}`, '"')}`
    }
  ])

/**
 * The size at which a batch is sent, in characters. PostgreSQL collects the rows of a batch in memory, and in files if
 * they exceed a few megabytes.
 */
const fullBatchLength = 256 * 1024

/**
 * The rows of an import or an edit, in temporary tables of the current transaction. No other connection sees the rows,
 * and reading them locks nothing.
 */
export interface Staging {
  /**
   * Adds the rows of parts. Rows are sent in batches. If a row violates a CHECK constraint of its table, the call that
   * sends the row fails.
   */
  readonly add: (parts: Iterable<WorkspacePart>) => Effect.Effect<void, InvalidContent | SqlError>
  /** Sends the remaining rows, so that the next statements see all rows. Must be called once, after the last part. */
  readonly end: Effect.Effect<void, InvalidContent | SqlError>
  /** Returns the number of rows of a table that were added. */
  readonly count: (table: ImportTable) => number
  /** Returns true if any row of a table was added. */
  readonly has: (table: ImportTable) => boolean
}

/** Returns the temporary table for the rows of a table. Staged rows of content have no `workspace_id`. */
export const stagedTable = (table: ImportTable): string => `pg_temp.${stagedTablePrefix}${table}`

/**
 * Returns the statements that create the temporary table for a table, with the same CHECK constraints. An index keeps
 * emails unique, as in `users`, because only PostgreSQL decides which emails are equal in lower case. For all other
 * columns with unique values, the reader of the archive has already rejected duplicates.
 */
const createTable = (table: ImportTable): string => `
  create temporary table ${stagedTablePrefix}${table} (
    like ${table} including constraints including defaults, path text, ordinal integer
  ) on commit drop;
  ${belongsToWorkspace(table) ? `alter table ${stagedTable(table)} alter workspace_id drop not null;` : ""}
  ${table === "users" ? `create unique index users_email on ${stagedTable(table)} (lower(email));` : ""}`

const createTables = `do $$ begin ${importTables.map(createTable).join("")} end $$`

/** Adds the rows of the JSON array `$1` to a temporary table. */
const insertRows = (table: ImportTable): string => {
  const columns = [...importColumns[table], "path", "ordinal"]
  return `insert into ${stagedTable(table)} (${columns})
    select ${columns} from json_populate_recordset(null::${stagedTable(table)}, $1::json)`
}

/** Analyzes the columns on which most statements join. The planner needs no statistics of other columns. */
const analyzeTables = (tables: ReadonlyArray<ImportTable>): string =>
  `analyze ${tables.map(
    (table) => `${stagedTable(table)} (${table === "prompt_tags" ? "prompt_id, tag_id" : "id"})`
  )}`

/** A row of one table, and the row's path in the workspace. A row of content has no `workspace_id`. */
interface ImportRow {
  readonly table: ImportTable
  readonly path: string
  /** The values of the table's columns. Other members are ignored. */
  readonly row: object
}

const toTagRows = (path: string, promptId: string, tags: WorkspacePrompt["tags"]): ReadonlyArray<ImportRow> =>
  tags.map((tag_id, index) => ({
    table: "prompt_tags",
    path: `${path}.tags[${index}]`,
    row: { prompt_id: promptId, tag_id }
  }))

const toChildRows = (
  path: string,
  promptId: string,
  list: "fragments" | "versions",
  items: ReadonlyArray<object>
): ReadonlyArray<ImportRow> =>
  items.map((item, index) => ({
    table: `prompt_${list}` as const,
    path: `${path}.${list}[${index}]`,
    row: { ...item, prompt_id: promptId }
  }))

/** Returns the rows of one part of a workspace; `index` is the part's position in its list. */
const toPartRows = (part: WorkspacePart, index: number): ReadonlyArray<ImportRow> => {
  const path = `${part.list}[${index}]`
  switch (part.list) {
    case "workspace":
      return [{ table: "workspaces", path: "workspace", row: part.item }]
    case "prompts": {
      const { tags, fragments, versions, ...row } = part.item
      return [
        { table: "prompts", path, row },
        ...toTagRows(path, row.id, tags),
        ...toChildRows(path, row.id, "fragments", fragments),
        ...toChildRows(path, row.id, "versions", versions)
      ]
    }
    case "api_keys":
      return [{ table: "api_keys", path, row: { ...part.item, key_hash: `\\x${part.item.key_hash}` } }]
    default:
      return [{ table: part.list, path, row: part.item }]
  }
}

/** The rows of a table that were not sent yet, as JSON. */
interface Batch {
  rows: Array<string>
  length: number
  /** The number of rows of the table so far, whether sent or not. */
  count: number
}

/** Creates the temporary tables in the current transaction, and returns their `Staging`. */
export const makeStaging = Effect.fnUntraced(function* (sql: PgClient) {
  yield* sql.unsafe(createTables)
  const batches = new Map<ImportTable, Batch>()
  /** The number of parts of each list so far. */
  const counts = new Map<WorkspacePart["list"], number>()

  const send = Effect.fnUntraced(
    function* (table: ImportTable, batch: Batch) {
      yield* sql.unsafe(insertRows(table), [`[${batch.rows}]`])
      batch.rows = []
      batch.length = 0
    },
    Effect.catchIf(isConstraintViolation, (error) => Effect.fail(toInvalidContent(error)))
  )

  const staging: Staging = {
    add: Effect.fnUntraced(function* (parts) {
      for (const part of parts) {
        const index = counts.get(part.list) ?? 0
        counts.set(part.list, index + 1)
        for (const { table, path, row } of toPartRows(part, index)) {
          const batch = batches.get(table) ?? { rows: [], length: 0, count: 0 }
          batches.set(table, batch)
          const json = JSON.stringify({ ...row, path, ordinal: batch.count++ })
          batch.rows.push(json)
          batch.length += json.length
          if (batch.length >= fullBatchLength) yield* send(table, batch)
        }
      }
    }),
    end: Effect.gen(function* () {
      for (const [table, batch] of batches) yield* send(table, batch)
      yield* sql.unsafe(analyzeTables([...batches.keys()]))
    }),
    count: (table) => batches.get(table)?.count ?? 0,
    has: (table) => batches.has(table)
  }
  return staging
})
