import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeRepeatingLog } from "../../../../application/observability/RepeatingLog.ts"
import { describeSqlError, isUnavailable, sqlState, toDefect } from "./SqlErrors.ts"
import { connectTimeout, poolExhaustedError, statementTimeoutMs } from "./Timeouts.ts"

/**
 * The level at which it is logged that PostgreSQL is unavailable. A program that reports this error itself uses
 * `Debug`, so that the reason is not printed twice.
 */
export const OutageLogLevel = Context.Reference<"Warn" | "Debug">("prompt-retrieval/OutageLogLevel", {
  defaultValue: () => "Warn"
})

/** Fails with `Unavailable` if an SQL error is temporary. Otherwise, the error is a defect. */
export type SqlErrorHandler = (error: SqlError) => Effect.Effect<never, Unavailable>

/**
 * Returns the warning for a statement that failed for a reason other than a failed connection; otherwise `undefined`.
 */
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
  const logOutage = makeRepeatingLog((reason) =>
    Effect.flatMap(OutageLogLevel, (level) =>
      Effect.logWithLevel(level)(`PostgreSQL is unavailable: ${reason}`)
    )
  )
  const logWarning = makeRepeatingLog((warning) => Effect.logWarning(warning))
  return (error) => {
    if (!isUnavailable(error)) return Effect.die(toDefect(error))
    const warning = findWarning(error)
    const log = warning === undefined ? logOutage(describeSqlError(error)) : logWarning(warning)
    return Effect.andThen(log, Effect.fail(Unavailable))
  }
}
