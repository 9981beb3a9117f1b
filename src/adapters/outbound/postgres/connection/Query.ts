import type { PgClient } from "@effect/sql-pg/PgClient"
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"

/** One SQL statement with its parameters `$1`, `$2`, … */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

/** A row that is not decoded yet. */
export type Row = PgConnection.Row

/** Runs one statement that changes nothing and returns its rows. */
export type Query = (statement: Statement) => Effect.Effect<ReadonlyArray<Row>, Unavailable>

/** Runs one statement in the current transaction of a client and returns its rows. */
export const execute = (
  sql: PgClient,
  { text, params }: Statement
): Effect.Effect<ReadonlyArray<Row>, SqlError> => sql.unsafe<Row>(text, params)
