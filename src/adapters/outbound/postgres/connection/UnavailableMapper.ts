import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeStateLog } from "../../../../application/StateLog.ts"
import { describeSqlError, isUnavailable, sqlState } from "./SqlErrors.ts"
import { poolExhaustedError, queryTimeout, queryTimeoutError, statementTimeoutMs } from "./Timeouts.ts"

/** Turns SQL errors of an effect into the port's `Unavailable`, or into defects. */
export type UnavailableMapper = <A, E, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

/** Why a statement failed while PostgreSQL can be reached. */
type Condition = "pool exhausted" | "no response" | "statement timeout" | "canceled" | "refused"

const warnings: Readonly<Record<Condition, string>> = {
  "pool exhausted": "A read waited 1 s while all connections of its pool were busy; responded 503",
  "no response": `A read got no response from PostgreSQL for ${queryTimeout}; responded 503`,
  "statement timeout": `A read exceeded the ${statementTimeoutMs / 1000} s statement timeout; responded 503`,
  canceled: "PostgreSQL did not complete a statement; responded 503",
  refused: "PostgreSQL did not complete a statement; responded 503"
}

/** Returns the condition that caused an error, or `undefined` if PostgreSQL cannot be reached. */
const findCondition = (error: SqlError): Condition | undefined => {
  if (error === poolExhaustedError) return "pool exhausted"
  if (error === queryTimeoutError) return "no response"
  switch (error.reason._tag) {
    case "StatementTimeoutError":
      return describeSqlError(error).includes("statement timeout") ? "statement timeout" : "canceled"
    case "LockTimeoutError":
    case "DeadlockError":
    case "SerializationError":
      return "refused"
    default: {
      const code = sqlState(error)
      return code.startsWith("53") && code !== "53300" ? "refused" : undefined
    }
  }
}

/** A condition ends when it has not occurred for this long, in milliseconds. */
const quietPeriod = 60_000

/**
 * Returns a function that logs an occurrence of a condition, once until the condition ends. A success does not end it,
 * because other reads succeed all the time.
 */
const makeConditionLog = (condition: Condition) => {
  const stateLog = makeStateLog({ failed: warnings[condition] })
  const hasReason = condition === "canceled" || condition === "refused"
  let lastTime = Number.NEGATIVE_INFINITY
  return (error: SqlError): Effect.Effect<void> =>
    Effect.suspend(() => {
      const now = performance.now()
      const hasEnded = now - lastTime > quietPeriod
      lastTime = now
      const warn = stateLog.down(hasReason ? describeSqlError(error) : undefined)
      return hasEnded ? Effect.andThen(stateLog.up, warn) : warn
    })
}

/**
 * Returns the mapper of one database, the only place that decides which SQL errors are `Unavailable`. Logs one line when
 * PostgreSQL becomes unavailable, and one when reads begin to fail for another reason.
 */
export const makeUnavailableMapper = (): UnavailableMapper => {
  const outageLog = makeStateLog({ failed: "PostgreSQL is unavailable" })
  const conditionLogs = {
    "pool exhausted": makeConditionLog("pool exhausted"),
    "no response": makeConditionLog("no response"),
    "statement timeout": makeConditionLog("statement timeout"),
    canceled: makeConditionLog("canceled"),
    refused: makeConditionLog("refused")
  }
  const log = (error: SqlError): Effect.Effect<void> => {
    const condition = findCondition(error)
    return condition === undefined ? outageLog.down(describeSqlError(error)) : conditionLogs[condition](error)
  }
  return <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>) =>
    effect.pipe(
      Effect.tap(outageLog.up),
      Effect.catchIf(isSqlError, (error) =>
        isUnavailable(error) ? Effect.andThen(log(error), Effect.fail(Unavailable)) : Effect.die(error)
      )
      // TypeScript does not know that `isSqlError` excludes exactly `SqlError` from a generic error type.
    ) as Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
}
