import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { DatabaseServer } from "./DatabaseServer.ts"
import { statementTimeoutMs } from "../driver/SqlErrors.ts"

/**
 * A condition that is true if the session belongs to this connection alone. `$1` is the process id that was reported
 * when the connection was opened. A pooler reports a different process id.
 */
const isOwnSession = "pg_backend_pid()::text = $1"

/**
 * An expression that identifies a server until its next restart: the time at which the server started, with
 * microseconds. The value does not depend on the time zone of a session. It also does not depend on the address of the
 * server, because one server may have several addresses.
 */
export const serverIdentity = "extract(epoch from pg_postmaster_start_time())::text"

/**
 * Sets up a session. A session of a pooler stays as it is, because the settings would affect other clients. With
 * generic plans, PostgreSQL plans each prepared statement once per session. Without them, PostgreSQL plans every
 * execution, because a plan for the given arrays looks cheaper. Planning a small read takes longer than executing it.
 */
const setUp = `select ${isOwnSession} as is_own, quote_ident(current_user) as role,
  case when ${isOwnSession} then set_config('plan_cache_mode', 'force_generic_plan', false) end as plans,
  case when ${isOwnSession} then set_config('statement_timeout', '${statementTimeoutMs}', false)
    else current_setting('statement_timeout') end as timeout,
  ${serverIdentity} as server`

interface SetUpRow {
  readonly is_own: boolean
  readonly role: string
  readonly timeout: string
  readonly server: string
}

const queryRow = (connection: PgConnection, text: string): Effect.Effect<SetUpRow, SqlError> =>
  Effect.map(
    connection.query(text, [String(connection.processId)], false),
    ({ rows }) => rows[0] as unknown as SetUpRow
  )

/** Returns true if a connection leads directly to PostgreSQL, false if it leads to a pooler. */
export const checkOwnSession = (connection: PgConnection): Effect.Effect<boolean, SqlError> =>
  Effect.map(queryRow(connection, `select ${isOwnSession} as is_own`), ({ is_own }) => is_own)

/** Sets up the session of a connection. Succeeds with true if statements can be prepared in the session. */
export type SetUpSession = (connection: PgConnection) => Effect.Effect<boolean, SqlError>

/**
 * Returns the function that sets up the sessions of one database. The function fails if a session is not on the server
 * of the previous session. If the sessions of a pooler have no statement timeout, the function logs one warning.
 */
export const makeSetUpSession = (databaseServer: DatabaseServer["Service"]): SetUpSession => {
  let hasWarned = false
  return Effect.fnUntraced(function* (connection) {
    const { is_own, role, timeout, server } = yield* queryRow(connection, setUp)
    yield* databaseServer.confirm(server)
    if (timeout === "0" && !hasWarned) {
      hasWarned = true
      yield* Effect.logWarning(
        `Reads go through a pooler and have no statement timeout; run ALTER ROLE ${role} SET statement_timeout = '${statementTimeoutMs / 1000}s'`
      )
    }
    return is_own
  })
}
