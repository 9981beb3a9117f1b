import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { executeCounted } from "../connection/Query.ts"
import { contentTables } from "./ContentTables.ts"
import * as queries from "./ImportQueries.ts"
import type { StagedRows } from "./StagedRows.ts"

/** Updates and adds the staged rows of content. Returns the number of rows that were changed and added. */
export const writeContent = Effect.fnUntraced(function* (sql: PgClient, { from, tables }: StagedRows) {
  let [changed, added] = [0, 0]
  for (const table of contentTables.filter((table) => tables.includes(table))) {
    changed += yield* executeCounted(sql, queries.updateContent(from, table))
    added += yield* executeCounted(sql, queries.insertMissing(from, table))
  }
  return { changed, added }
})
