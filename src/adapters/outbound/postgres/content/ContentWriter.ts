import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { contentTables } from "./ContentTables.ts"
import * as queries from "./ImportQueries.ts"
import type { StagedRows } from "./StagedRows.ts"

/** Updates and adds the staged rows of content. */
export const writeContent = Effect.fnUntraced(function* (sql: PgClient, { from, tables }: StagedRows) {
  for (const table of contentTables.filter((table) => tables.includes(table))) {
    yield* sql.unsafe(queries.updateContent(from, table))
    yield* sql.unsafe(queries.insertMissing(from, table))
  }
})
