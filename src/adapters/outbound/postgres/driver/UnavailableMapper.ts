import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
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

/** Turns the SQL errors of an effect into `Unavailable` or into defects. */
export type UnavailableMapper = <A, E, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

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
 * Returns the mapper of one database. The mapper logs when PostgreSQL becomes unavailable or reads begin to fail for
 * another reason, and again every minute while the problem lasts.
 */
export const makeUnavailableMapper = (): UnavailableMapper => {
  const outageLog = makeRepeatingLog((reason) =>
    Effect.flatMap(OutageLogLevel, (level) =>
      Effect.logWithLevel(level)(`PostgreSQL is unavailable: ${reason}`)
    )
  )
  // A successful read does not clear this log, because other reads may still fail.
  const warningLog = makeRepeatingLog((warning) => Effect.logWarning(warning))
  const log = (error: SqlError): Effect.Effect<void> => {
    const warning = findWarning(error)
    return warning === undefined ? outageLog.report(describeSqlError(error)) : warningLog.report(warning)
  }
  return <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>) =>
    effect.pipe(
      Effect.tap(outageLog.clear),
      Effect.catchIf(isSqlError, (error) =>
        isUnavailable(error)
          ? Effect.andThen(log(error), Effect.fail(Unavailable))
          : Effect.die(toDefect(error))
      )
      // TypeScript does not know that `isSqlError` excludes exactly `SqlError` from a generic error type.
    ) as Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
}
