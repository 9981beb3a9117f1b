import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { findById } from "../driver/Query.ts"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"

/** The columns of a table, and how `makeUpsert` updates a row with an id that the table already contains. */
interface UpsertRules {
  readonly columns: ReadonlyArray<string>
  /** The assignments that update the stored row `t` with the given row `excluded`. */
  readonly updates: ReadonlyArray<string>
  /** Returns the condition under which a given row updates a stored row. */
  readonly differs: (stored: string, given: string) => string
}

/**
 * Makes the statement that adds the rows of the JSON array `$1`, and updates those that the table already contains if
 * they differ. Rows that do not differ are neither written nor locked. Rows are written in the order of their ids, so
 * that two transactions with the same rows do not deadlock. The statement returns how many rows it added and changed.
 */
export const makeUpsert = (table: string, { columns, updates, differs }: UpsertRules): string => {
  const otherColumns = columns.filter((name) => name !== "id")
  // Only an added row has no `xmax`: an update locks the row first.
  return `with written as (
      insert into ${table} as t (${columns})
      select ${columns.map((name) => `s.${name}`)}
      from json_populate_recordset(null::${table}, $1::json) s
      left join ${findById(table, "s.id", otherColumns)} o on true
      where o.id is null or ${differs("o", "s")}
      order by s.id
      on conflict (id) do update set ${updates} where ${differs("t", "excluded")}
      returning t.xmax = 0 as is_added
    )
    select count(*) filter (where is_added)::int as added, count(*) filter (where not is_added)::int as changed
    from written`
}

const decodeCounts = makeFirstRowDecoder(Schema.Struct({ added: Schema.Int, changed: Schema.Int }))

/** A batch of rows is sent when its JSON has at least this many characters. */
const fullBatchLength = 1024 * 1024

/** Runs a statement of `makeUpsert` with all rows, in batches. Returns how many rows were added and changed. */
export const upsertRows = Effect.fnUntraced(function* (
  sql: PgClient,
  statement: string,
  rows: Iterable<object>
) {
  let [added, changed] = [0, 0]
  let batch: Array<string> = []
  let length = 0
  const send = Effect.gen(function* () {
    const counts = decodeCounts(yield* sql.unsafe(statement, [`[${batch}]`]))
    added += counts.added
    changed += counts.changed
    batch = []
    length = 0
  })
  for (const row of rows) {
    const json = JSON.stringify(row)
    batch.push(json)
    length += json.length
    if (length >= fullBatchLength) yield* send
  }
  if (batch.length > 0) yield* send
  return { added, changed }
})
