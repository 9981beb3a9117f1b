import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { makeRepeatingLog } from "../../../../application/observability/RepeatingLog.ts"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"

/** The time limit, in milliseconds, for a query to get a permit and a connection, and for a connection to open. */
export const connectTimeoutMs = 1000

/** How long PostgreSQL may work on the statement of a query, in milliseconds. */
export const statementTimeoutMs = 3000

/** How long a server may take to respond to a statement before the server counts as lost, in milliseconds. */
export const responseTimeoutMs = statementTimeoutMs + 1000

export const makeConnectionError = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) })

/** No connection was established within `connectTimeoutMs`. */
export const connectTimeoutError = makeConnectionError("no connection was made in time")

/** The server did not respond to a statement within `responseTimeoutMs`. */
export const responseTimeoutError = makeConnectionError("the server did not respond in time")

/** No connection became free within `connectTimeoutMs`, because all connections were busy. This is not an outage. */
export const poolExhaustedError = makeConnectionError("the pool's connections are all busy")

/**
 * Returns the SQLSTATE of an error. Without a SQLSTATE, returns the system's error code, such as `ECONNREFUSED`, or an
 * empty text.
 */
export const sqlState = ({ reason }: SqlError): string => {
  const code = (reason.cause as { readonly code?: unknown } | undefined)?.code
  return typeof code === "string" ? code : ""
}

/**
 * Returns the message of PostgreSQL or of the operating system, and the remedy if the role lacks a privilege. Omits the
 * text that the driver adds, and PostgreSQL's DETAIL, which can contain values of a row.
 */
export const describeSqlError = (error: SqlError): string => {
  const { code = "", message = "" } = error.reason.cause as Partial<NodeJS.ErrnoException>
  const remedy = code === "42501" ? "; deploy/roles.sql grants the privileges of each role" : ""
  return `${message || code || error.reason._tag}${remedy}`
}

/** Returns true if a connection was lost, refused or not available in time, or if the server stops or starts (57P0x). */
export const isConnectionLost = (error: SqlError): boolean =>
  error.reason._tag === "ConnectionError" || sqlState(error).startsWith("57P0")

/**
 * Returns true if the error is temporary: the connection was lost or not available, the statement timed out, or a
 * concurrent transaction interfered. A server without a free connection, memory or disk space reports class 53.
 */
export const isTemporary = (error: SqlError): boolean =>
  error.isRetryable ||
  isConnectionLost(error) ||
  error.reason.operation === "connect" ||
  sqlState(error).startsWith("53")

/** The level of the log line about an unavailable PostgreSQL. A program that reports the error itself sets `Debug`. */
export const OutageLogLevel = Context.Reference<"Warn" | "Debug">(
  "prompt-retrieval/adapters/outbound/postgres/driver/OutageLogLevel",
  { defaultValue: () => "Warn" }
)

/** Fails with `Unavailable` if an SQL error is temporary. Otherwise, the error is a defect. */
export type SqlErrorHandler = (error: SqlError) => Effect.Effect<never, Unavailable>

/** Returns the warning for a temporary error that occurred although PostgreSQL is available. */
const findWarning = (error: SqlError): string | undefined => {
  if (error === poolExhaustedError)
    return `A read waited ${connectTimeoutMs / 1000} second while all connections for its workspace were busy; failed as unavailable`
  const { _tag } = error.reason
  const reason = describeSqlError(error)
  if (_tag === "StatementTimeoutError" && reason.includes("statement timeout"))
    return `A read exceeded the ${statementTimeoutMs / 1000} s statement timeout; failed as unavailable`
  const code = sqlState(error)
  const lacksResources = code.startsWith("53") && code !== "53300"
  return lacksResources || (error.isRetryable && _tag !== "ConnectionError")
    ? `PostgreSQL did not complete a statement; failed as unavailable: ${reason}`
    : undefined
}

/**
 * Returns the handler of one database. The handler logs why PostgreSQL is unavailable or why reads fail. The handler
 * logs a problem immediately, and again every minute while the problem lasts.
 */
export const makeSqlErrorHandler = (): SqlErrorHandler => {
  const logOutage = makeRepeatingLog((message) =>
    Effect.flatMap(OutageLogLevel, (level) => Effect.logWithLevel(level)(message))
  )
  const logWarning = makeRepeatingLog((message) => Effect.logWarning(message))
  return (error) => {
    if (!isTemporary(error))
      return Effect.die(
        new Error(`PostgreSQL rejected a statement: ${describeSqlError(error)}`, { cause: error })
      )
    const warning = findWarning(error)
    const log =
      warning === undefined
        ? logOutage(`PostgreSQL is unavailable: ${describeSqlError(error)}`)
        : logWarning(warning)
    return Effect.andThen(log, Effect.fail(Unavailable))
  }
}
