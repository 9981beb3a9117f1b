import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { DatabaseServer } from "./DatabaseServer.ts"
import { makeConnectionError, statementTimeoutMs } from "../driver/Timeouts.ts"

/** True if the session belongs to this connection alone. A pooler reports a different process id than the session. */
const isOwnSession = "pg_backend_pid()::text = $1"

/**
 * Identifies a running server, until its next restart: the time of its start in microseconds. Does not depend on the
 * time zone of a session, or on the address that a connection uses, because a server may have several.
 */
export const serverIdentity = "extract(epoch from pg_postmaster_start_time())::text"

const selectIsOwnSession = `select ${isOwnSession} as is_own`

/**
 * Sets up a session, unless it is a session of a pooler, whose settings would affect other clients. With generic
 * plans, PostgreSQL plans each statement once per session. Otherwise PostgreSQL plans every execution, because a plan
 * for the given arrays looks cheaper, and planning a small read takes longer than executing it.
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

/** Returns true if a connection leads directly to PostgreSQL, false if it leads to a pooler. */
export const checkOwnSession = (connection: PgConnection): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    connection.query(selectIsOwnSession, [String(connection.processId)], false),
    ({ rows }) => (rows[0] as unknown as SetUpRow).is_own
  )

const replacedServerError = makeConnectionError("the connection leads to another server than the change feed")

/**
 * Sets up the session of a connection. Succeeds with true if the session belongs to this connection alone, so that
 * its statements can be prepared.
 */
export type SetUpSession = (connection: PgConnection) => Effect.Effect<boolean, SqlError>

/**
 * Returns the function that sets up the sessions of one database; it fails if a session is on another server than the
 * change feed. A warning is logged once if a pooler's sessions have no statement timeout.
 */
export const makeSetUpSession = (databaseServer: DatabaseServer["Service"]): SetUpSession => {
  let hasWarned = false
  return (connection) =>
    Effect.gen(function* () {
      const { rows } = yield* connection.query(setUp, [String(connection.processId)], false)
      const { is_own, role, timeout, server } = rows[0] as unknown as SetUpRow
      if (!databaseServer.confirm(server)) return yield* Effect.fail(replacedServerError)
      if (timeout === "0" && !hasWarned) {
        hasWarned = true
        yield* Effect.logWarning(
          "Reads go through a pooler and have no statement timeout; " +
            `run ALTER ROLE ${role} SET statement_timeout = '${statementTimeoutMs / 1000}s'`
        )
      }
      return is_own
    })
}
