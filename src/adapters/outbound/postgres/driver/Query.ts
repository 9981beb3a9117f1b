import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement as SqlStatement } from "effect/sql/Statement"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"

/** A row that is not decoded yet. */
export type Row = PgConnection.Row

/** One SQL statement with its parameters `$1`, `$2`, … */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
  /** The workspace that the statement reads. A pool keeps one connection free for other workspaces. */
  readonly workspace?: WorkspaceId | undefined
}

/** Adds a parameter to a statement and returns its placeholder, such as `$1`. */
export type AddParameter = (value: unknown) => string

export const makeStatement = (
  workspace: WorkspaceId,
  makeText: (parameter: AddParameter) => string
): Statement => {
  const params: Array<unknown> = []
  return {
    text: makeText((value) => `$${params.push(value)}`),
    params,
    workspace
  }
}

/** Runs a statement that changes no row, and returns its rows. An interruption does not wait for the server. */
export type Query = (statement: Statement) => Effect.Effect<ReadonlyArray<Row>, Unavailable>

/** Runs a statement and returns the number of rows that the statement wrote. */
export const countRows = ({ raw }: Pick<SqlStatement<object>, "raw">): Effect.Effect<number, SqlError> =>
  Effect.map(raw, (result) => (result as PgConnection.Result).rowCount)

/**
 * Returns a FROM item that selects one row of a table by its id. The caller compares other columns, such as
 * `workspace_id`, outside this item. OFFSET 0 forces a lookup by id. Without OFFSET 0, PostgreSQL could read all rows
 * of the workspace for each id if most workspaces have few rows.
 */
export const lateralById = (table: string, id: string, columns: ReadonlyArray<string>): string =>
  `lateral (select id, ${columns.join(", ")} from ${table} where id = ${id} offset 0)`
