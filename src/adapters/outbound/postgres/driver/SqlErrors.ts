import type { SqlError } from "effect/sql/SqlError"

/**
 * Returns the SQLSTATE of an error that PostgreSQL reported. For other errors, returns the code of the operating
 * system, such as `ECONNREFUSED`, or an empty text.
 */
export const sqlState = ({ reason }: SqlError): string => {
  const code = (reason.cause as { readonly code?: unknown } | undefined)?.code
  return typeof code === "string" ? code : ""
}

/**
 * Returns the message of PostgreSQL or of the operating system, without the text that the driver adds, and without
 * PostgreSQL's DETAIL, which may contain values of a row.
 */
export const describeSqlError = ({ reason }: SqlError): string => {
  const { code = "", message = "" } = reason.cause as Partial<NodeJS.ErrnoException>
  return message || code || reason._tag
}

/** The end of messages about a missing privilege: where the operator finds the privileges of each role. */
export const grantHint = "deploy/roles.sql grants the privileges of each role"

/** Returns the defect for an unexpected error. If the role lacks a privilege, the message names the remedy. */
export const toDefect = (error: SqlError): Error =>
  sqlState(error) === "42501"
    ? new Error(`${describeSqlError(error)}; ${grantHint}`, { cause: error })
    : error

/**
 * Returns true if the connection was lost, refused or not available in time. A server that stops or starts reports
 * 57P0x.
 */
export const isConnectionLost = (error: SqlError): boolean =>
  error.reason._tag === "ConnectionError" || sqlState(error).startsWith("57P0")

/**
 * Returns true if the error is temporary: the connection was lost or not available, the statement timed out, or a
 * concurrent transaction interfered. A server without a free connection, memory or disk space reports class 53.
 */
export const isUnavailable = (error: SqlError): boolean =>
  isConnectionLost(error) ||
  error.reason.operation === "connect" ||
  error.reason._tag === "StatementTimeoutError" ||
  error.reason._tag === "LockTimeoutError" ||
  error.reason._tag === "DeadlockError" ||
  error.reason._tag === "SerializationError" ||
  sqlState(error).startsWith("53")
