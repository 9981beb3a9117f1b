import type { SqlError } from "effect/sql/SqlError"

/** Returns the five characters of SQLSTATE, or an empty text if PostgreSQL itself did not report the error. */
export const sqlState = ({ reason }: SqlError): string => {
  const code = (reason.cause as { readonly code?: unknown } | undefined)?.code
  return typeof code === "string" ? code : ""
}

/**
 * Returns the message of PostgreSQL or of the operating system, without the text that the driver adds. The message
 * contains no value of a row.
 */
export const describeSqlError = ({ reason }: SqlError): string => {
  const { code = "", message = "" } = reason.cause as Partial<NodeJS.ErrnoException>
  return message || code || reason._tag
}

/** Where an operator finds the privileges that a role lacks. */
export const grantHint = "deploy/roles.sql grants the privileges of each role"

/** Returns the defect for an unexpected error. If the role lacks a privilege, the message names the remedy. */
export const toDefect = (error: SqlError): Error =>
  sqlState(error) === "42501"
    ? new Error(`${describeSqlError(error)}; ${grantHint}`, { cause: error })
    : error

/** Returns true if the connection was lost or refused. 57P0x is reported by a server that stops or starts. */
export const isConnectionLost = (error: SqlError): boolean =>
  error.reason._tag === "ConnectionError" || sqlState(error).startsWith("57P0")

/**
 * Returns true if the connection was lost or not available, or the statement timed out or met a concurrent
 * transaction. Class 53 is reported by a server without a free connection, memory or disk space.
 */
export const isUnavailable = (error: SqlError): boolean =>
  isConnectionLost(error) ||
  error.reason.operation === "connect" ||
  error.reason._tag === "StatementTimeoutError" ||
  error.reason._tag === "LockTimeoutError" ||
  error.reason._tag === "DeadlockError" ||
  error.reason._tag === "SerializationError" ||
  sqlState(error).startsWith("53")
