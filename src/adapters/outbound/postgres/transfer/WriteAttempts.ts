import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Database } from "../Database.ts"
import { sqlState } from "../driver/SqlErrors.ts"
import { isConstraintViolation, toInvalidContent } from "./Staging.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { InvalidContent } from "../../../../domain/workspace/Problem.ts"

export type Transact = Database["Service"]["transact"]

/** Maximum number of attempts of a write if concurrent transactions interfere. */
const maxAttempts = 10

/**
 * The SQLSTATEs of errors that a concurrent transaction may cause by adding, deleting or changing a row, or by a
 * deadlock.
 */
const concurrencyPattern = /^(23503|23505|40001|40P01)$/

/** The attempt failed, probably because a concurrent transaction interfered. The write can be attempted again. */
const AttemptFailed = { _tag: "AttemptFailed" } as const
type AttemptFailed = typeof AttemptFailed

/** The error that rolls back the transaction of a dry run. It carries the result of the dry run. */
class DryRunResult<A> {
  readonly value: A
  constructor(value: A) {
    this.value = value
  }
}

const isAttemptFailed = (error: unknown): error is AttemptFailed => error === AttemptFailed

/**
 * Converts an SQL error to `AttemptFailed` if a concurrent transaction may have caused the error and another attempt is
 * left. Otherwise, converts a constraint violation to `InvalidContent`. Other errors do not change.
 */
const toWriteError = (error: SqlError, isLast: boolean): SqlError | InvalidContent | AttemptFailed => {
  if (!isLast && concurrencyPattern.test(sqlState(error))) return AttemptFailed
  return isConstraintViolation(error) ? toInvalidContent(error) : error
}

/**
 * Runs a write in a transaction. Within another transaction, a savepoint takes the place of the transaction. Runs the
 * write again if a concurrent transaction interferes, up to `maxAttempts` times in total. Rolls back a dry run.
 */
export const runAttempts = <A, E>(
  transact: <B, F, R>(work: Effect.Effect<B, F, R>) => Effect.Effect<B, F | SqlError | Unavailable, R>,
  dryRun: boolean,
  write: Effect.Effect<A, E | SqlError>
): Effect.Effect<A, E | SqlError | InvalidContent | Unavailable> => {
  const isDryRunResult = (error: unknown): error is DryRunResult<A> => error instanceof DryRunResult
  const run = (attempt: number): Effect.Effect<A, unknown> =>
    write.pipe(
      Effect.catchIf(isSqlError, (error) => Effect.fail(toWriteError(error, attempt === maxAttempts))),
      Effect.flatMap((value) => (dryRun ? Effect.fail(new DryRunResult(value)) : Effect.succeed(value))),
      transact,
      Effect.catchIf(isDryRunResult, ({ value }) => Effect.succeed(value)),
      Effect.catchIf(isAttemptFailed, () => run(attempt + 1))
    )
  // TypeScript cannot remove the handled errors from a union with a generic error type.
  return run(1) as Effect.Effect<A, E | SqlError | InvalidContent | Unavailable>
}

/**
 * The first statement of a transaction in which all statements use one snapshot. The second statement takes the
 * snapshot.
 */
export const repeatableRead = "set transaction isolation level repeatable read"

/** Like `repeatableRead`, for a transaction that changes nothing. */
export const repeatableReadReadOnly = `${repeatableRead}, read only`
