import { connect, type Socket } from "node:net"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { makeColumnTypes } from "../driver/ColumnTypes.ts"
import type { Row } from "../driver/Query.ts"
import {
  connectTimeoutMs,
  describeSqlError,
  makeConnectionError,
  sqlState,
  statementTimeoutMs
} from "../driver/SqlErrors.ts"
import { type ConnectionUrl, parseConnectionUrl } from "./ConnectionUrl.ts"

const openSocket = ({ host, port }: Pick<ConnectionUrl, "host" | "port">): Socket =>
  host.startsWith("/")
    ? connect({ path: `${host}/.s.PGSQL.${port}` })
    : // The driver writes each statement with one call, so Nagle's algorithm would only add a delay.
      connect({ host, port, noDelay: true })

/** Maximum size of a message from PostgreSQL, in bytes. The largest row has a prompt and all its fragments. */
const maxMessageSize = 16 * 1024 * 1024

/**
 * A condition that is true if the session belongs to this connection alone. `$1` is the process id that the connection
 * received when it was opened. Behind a pooler, the session has a different process id.
 */
const ownSessionSql = "pg_backend_pid()::text = $1"

/**
 * An expression that identifies a server until its next restart: the time at which the server started, with
 * microseconds. The value does not depend on the time zone of a session. The value also does not depend on the address
 * of the server, because one server can have several addresses.
 */
export const serverIdentity = "extract(epoch from pg_postmaster_start_time())::text"

/**
 * Sets up a session. A pooler's session stays unchanged, because the settings would affect other clients. With generic
 * plans, PostgreSQL plans each prepared statement once per session. Without generic plans, PostgreSQL plans every
 * execution, because a plan for the given arrays looks cheaper. Planning a small read takes longer than executing it.
 */
const setUpSql = `select ${ownSessionSql} as is_own, quote_ident(current_user) as role,
  case when ${ownSessionSql} then set_config('plan_cache_mode', 'force_generic_plan', false) end as plans,
  case when ${ownSessionSql} then set_config('statement_timeout', '${statementTimeoutMs}', false)
    else current_setting('statement_timeout') end as timeout,
  ${serverIdentity} as server`

const decodeSetUp = Schema.decodeUnknownSync(
  Schema.Struct({ is_own: Schema.Boolean, role: Schema.String, timeout: Schema.String })
)
const decodeServer = Schema.decodeUnknownSync(Schema.Struct({ server: Schema.String }))

/**
 * The server to which the connections of one URL lead. In a failover, another server takes over the URL. All
 * connections must then lead to the new server, because the change feed reports the changes of only one server.
 */
export interface DatabaseServer {
  /**
   * The configuration of all pools and connections of the URL. The pools have no minimum number of connections, so a
   * pool can be built while PostgreSQL is down. PgBouncer accepts only a few startup parameters, so `setUpSession`
   * applies the other settings after a connection is open.
   */
  readonly config: PgClient.PgPoolConfig
  /**
   * Reports the server of a connection: the value of the column `server` in `row` (see `serverIdentity`). If the
   * previous connection led to a different server, closes all connections, including this one, and fails. New
   * connections must then lead to the reported server.
   */
  readonly confirm: (row: Row | undefined) => Effect.Effect<void, SqlError>
  /**
   * Sets up the session of a connection, and confirms the connection's server. Succeeds with true if statements can be
   * prepared in the session. If the sessions of a pooler have no statement timeout, logs one warning.
   */
  readonly setUpSession: (connection: PgConnection.PgConnection) => Effect.Effect<boolean, SqlError>
}

const replacedServerError = makeConnectionError("another server has taken over")

/** Makes the `DatabaseServer` of a URL. Throws if the URL is invalid. */
export const makeDatabaseServer = (url: Redacted.Redacted): DatabaseServer => {
  const address = parseConnectionUrl(Redacted.value(url))
  if (typeof address === "string") throw new TypeError(`The URL of the database ${address}`)
  const sockets = new Set<Socket>()
  let current: string | undefined
  let hasWarned = false
  const confirm = Effect.fnUntraced(function* (row: Row | undefined) {
    const earlier = current
    current = decodeServer(row).server
    if (earlier === undefined || earlier === current) return
    for (const socket of sockets) socket.destroy(replacedServerError)
    yield* Effect.logInfo("PostgreSQL was restarted or replaced; its earlier connections are closed")
    return yield* replacedServerError
  })
  return {
    config: {
      url,
      stream: () => {
        const socket = openSocket(address)
        sockets.add(socket)
        return socket.on("close", () => sockets.delete(socket))
      },
      connectTimeout: connectTimeoutMs,
      startupParameters: { application_name: "prompt-retrieval", TimeZone: "UTC" },
      types: makeColumnTypes(),
      // With `multiplex`, the driver does not wait for the server when the caller of a statement is interrupted.
      // PostgreSQL still completes the statement. A connection runs only one query at a time, because a second query
      // would wait behind a slow query even if other connections are idle.
      multiplex: true,
      multiplexConcurrency: 1,
      maxMessageSize
    },
    confirm,
    setUpSession: Effect.fnUntraced(function* (connection) {
      const { rows } = yield* connection.query(setUpSql, [String(connection.processId)], false)
      const { is_own, role, timeout } = decodeSetUp(rows[0])
      yield* confirm(rows[0])
      if (timeout === "0" && !hasWarned) {
        hasWarned = true
        yield* Effect.logWarning(
          `Reads go through a pooler and have no statement timeout; run ALTER ROLE ${role} SET statement_timeout = '${statementTimeoutMs / 1000}s'`
        )
      }
      return is_own
    })
  }
}

/** Connects once. If the connection fails, returns the reason as a message for the operator; otherwise, `undefined`. */
export const findConnectionProblem = (url: Redacted.Redacted): Effect.Effect<string | undefined> =>
  PgConnection.make(makeDatabaseServer(url).config).pipe(
    Effect.scoped,
    Effect.match({
      onSuccess: () => undefined,
      onFailure: (error) =>
        // The database does not exist (3D000), or the role or its password is wrong (28000, 28P01).
        /^(3D|28)/.test(sqlState(error))
          ? `PostgreSQL rejected the connection of DATABASE_URL: ${describeSqlError(error)}`
          : `the database cannot be reached: ${describeSqlError(error)}`
    })
  )
