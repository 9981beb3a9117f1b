import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { makeRepeatingLog } from "../../../../application/observability/RepeatingLog.ts"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"

/** How long a query may wait for a permit of its workspace and for a connection. */
export const connectTimeout = "1 second"

export const connectTimeoutMs = Duration.toMillis(connectTimeout)

/** How long PostgreSQL may work on the statement of a query, in milliseconds. */
export const statementTimeoutMs = 3000

export const makeConnectionError = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) })

/** No connection was established within `connectTimeout`. */
export const connectTimeoutError = makeConnectionError("no connection was made in time")

/** No connection became free within `connectTimeout`, because all were busy. This is not an outage. */
export const poolExhaustedError = makeConnectionError("the pool's connections are all busy")

/** Returns the SQLSTATE, or else a code of the operating system, such as `ECONNREFUSED`, or else an empty text. */
export const sqlState = ({ reason }: SqlError): string => {
  const code = (reason.cause as { readonly code?: unknown } | undefined)?.code
  return typeof code === "string" ? code : ""
}

/**
 * Returns the message of PostgreSQL or of the operating system, and the remedy if the role lacks a privilege. Omits the
 * text that the driver adds, and PostgreSQL's DETAIL, which may contain values of a row.
 */
export const describeSqlError = (error: SqlError): string => {
  const { code = "", message = "" } = error.reason.cause as Partial<NodeJS.ErrnoException>
  const remedy = code === "42501" ? "; deploy/roles.sql grants the privileges of each role" : ""
  return `${message || code || error.reason._tag}${remedy}`
}

/** Returns true if a connection was lost, refused or not available in time, or the server stops or starts (57P0x). */
export const isConnectionLost = (error: SqlError): boolean =>
  error.reason._tag === "ConnectionError" || sqlState(error).startsWith("57P0")

/**
 * Returns true if the error is temporary: the connection was lost or not available, the statement timed out, or a
 * concurrent transaction interfered. A server without a free connection, memory or disk space reports class 53.
 */
export const isTemporary = (error: SqlError): boolean =>
  isConnectionLost(error) ||
  error.reason.operation === "connect" ||
  error.reason._tag === "StatementTimeoutError" ||
  error.reason._tag === "LockTimeoutError" ||
  error.reason._tag === "DeadlockError" ||
  error.reason._tag === "SerializationError" ||
  sqlState(error).startsWith("53")

/** The level at which an unavailable PostgreSQL is logged: `Debug` for a program that reports the error itself. */
export const OutageLogLevel = Context.Reference<"Warn" | "Debug">("prompt-retrieval/OutageLogLevel", {
  defaultValue: () => "Warn"
})

/** Fails with `Unavailable` if an SQL error is temporary. Otherwise, the error is a defect. */
export type SqlErrorHandler = (error: SqlError) => Effect.Effect<never, Unavailable>

/** Returns the warning for a statement that failed for a reason other than its connection. */
const findWarning = (error: SqlError): string | undefined => {
  if (error === poolExhaustedError)
    return `A read waited ${connectTimeout} while all connections of its pool were busy; failed as unavailable`
  const reason = describeSqlError(error)
  const notCompleted = `PostgreSQL did not complete a statement; failed as unavailable: ${reason}`
  switch (error.reason._tag) {
    case "StatementTimeoutError":
      return reason.includes("statement timeout")
        ? `A read exceeded the ${statementTimeoutMs / 1000} s statement timeout; failed as unavailable`
        : notCompleted
    case "LockTimeoutError":
    case "DeadlockError":
    case "SerializationError":
      return notCompleted
    default: {
      const code = sqlState(error)
      return code.startsWith("53") && code !== "53300" ? notCompleted : undefined
    }
  }
}

/**
 * Returns the handler of one database. The handler logs why PostgreSQL is unavailable or reads fail: immediately, and
 * again every minute while the problem lasts.
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
