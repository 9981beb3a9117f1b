import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeRepeatingLog } from "../../../../application/support/RepeatingLog.ts"
import { makeStateLog } from "../../../../application/support/StateLog.ts"
import { describeSqlError, isUnavailable, sqlState, toDefect } from "./SqlErrors.ts"
import {
  connectTimeout,
  poolExhaustedError,
  queryTimeout,
  queryTimeoutError,
  statementTimeoutMs
} from "./Timeouts.ts"

/** Turns the SQL errors of an effect into the port's `Unavailable`, or into defects. */
export type UnavailableMapper = <A, E, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

/** The reason why a statement failed although PostgreSQL can be reached. */
type Condition = "pool exhausted" | "no response" | "statement timeout" | "not completed"

const warnings: Readonly<Record<Condition, string>> = {
  "pool exhausted": `A read waited ${connectTimeout} while all connections of its pool were busy; failed as unavailable`,
  "no response": `A read got no response from PostgreSQL for ${queryTimeout}; failed as unavailable`,
  "statement timeout": `A read exceeded the ${statementTimeoutMs / 1000} s statement timeout; failed as unavailable`,
  "not completed": "PostgreSQL did not complete a statement; failed as unavailable"
}

/** Returns the condition that caused an error, or `undefined` if PostgreSQL cannot be reached. */
const findCondition = (error: SqlError): Condition | undefined => {
  if (error === poolExhaustedError) return "pool exhausted"
  if (error === queryTimeoutError) return "no response"
  switch (error.reason._tag) {
    case "StatementTimeoutError":
      return describeSqlError(error).includes("statement timeout") ? "statement timeout" : "not completed"
    case "LockTimeoutError":
    case "DeadlockError":
    case "SerializationError":
      return "not completed"
    default: {
      const code = sqlState(error)
      return code.startsWith("53") && code !== "53300" ? "not completed" : undefined
    }
  }
}

/** A condition ends when it has not occurred for this long, in milliseconds. */
const quietPeriodMs = 60_000

/**
 * Returns a function that reports an occurrence of a condition. Only the first occurrence is logged until the condition
 * ends. A success does not end the condition, because other reads succeed all the time.
 */
const makeConditionLog = (condition: Condition) => {
  const stateLog = makeStateLog({ failed: warnings[condition] })
  const hasReason = condition === "not completed"
  let lastTime = Number.NEGATIVE_INFINITY
  return (error: SqlError): Effect.Effect<void> =>
    Effect.suspend(() => {
      const now = performance.now()
      const hasEnded = now - lastTime > quietPeriodMs
      lastTime = now
      const warn = stateLog.down(hasReason ? describeSqlError(error) : undefined)
      return hasEnded ? Effect.andThen(stateLog.up, warn) : warn
    })
}

/**
 * Returns the mapper of one database. The mapper logs when PostgreSQL becomes unavailable, and again every minute while
 * PostgreSQL stays unavailable. It also logs when reads begin to fail for another reason.
 */
export const makeUnavailableMapper = (): UnavailableMapper => {
  const outageLog = makeRepeatingLog((reason) => Effect.logWarning(`PostgreSQL is unavailable: ${reason}`))
  const conditionLogs = {
    "pool exhausted": makeConditionLog("pool exhausted"),
    "no response": makeConditionLog("no response"),
    "statement timeout": makeConditionLog("statement timeout"),
    "not completed": makeConditionLog("not completed")
  }
  const log = (error: SqlError): Effect.Effect<void> => {
    const condition = findCondition(error)
    return condition === undefined
      ? outageLog.report(describeSqlError(error))
      : conditionLogs[condition](error)
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
