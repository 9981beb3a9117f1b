import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { InvalidContent } from "../../../../domain/WorkspaceContent.ts"
import type { Database } from "../Database.ts"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"

export type Transact = Database["Service"]["transact"]

/** Maximum number of further attempts of a write if concurrent transactions interfere. */
const maxRetries = 9
const retryDelay = Schedule.jittered(Schedule.spaced("50 millis"))

/**
 * Returns true for an error that a concurrent transaction may cause by adding, deleting or changing a row, or by a
 * deadlock.
 */
const isConcurrencyError = (error: unknown): boolean =>
  isSqlError(error) && /^(23503|23505|40001|40P01)$/.test(sqlState(error))

/** Describes an error of the last attempt, if PostgreSQL cannot store the content (class 22 or 23) or was interrupted. */
const describeContentError = (error: unknown): string | undefined => {
  if (isSqlError(error) && /^2[23]/.test(sqlState(error)))
    return `cannot be stored: ${describeSqlError(error)}`
  return isConcurrencyError(error) ? "was changed by others in each attempt; try again" : undefined
}

/** The error that rolls back the transaction of a dry run. It carries the result of the dry run. */
class DryRunResult<A> {
  readonly value: A
  constructor(value: A) {
    this.value = value
  }
}

/**
 * Runs a write in a transaction, which a dry run rolls back. If a concurrent transaction interferes, retries the write
 * up to `maxRetries` times. Fails with `InvalidContent` if PostgreSQL cannot store the content.
 */
export const runAttempts = <A, E>(
  transact: Transact,
  dryRun: boolean,
  write: Effect.Effect<A, E>
): Effect.Effect<A, Exclude<E, SqlError> | InvalidContent | Unavailable> => {
  const work: Effect.Effect<A, unknown> = dryRun
    ? Effect.flatMap(write, (value) => Effect.fail(new DryRunResult(value)))
    : write
  const run = transact(work, (transaction) =>
    transaction.pipe(
      Effect.retry({ times: maxRetries, while: isConcurrencyError, schedule: retryDelay }),
      Effect.catch((error) => {
        if (error instanceof DryRunResult) return Effect.succeed(error.value as A)
        const message = describeContentError(error)
        return Effect.fail(message === undefined ? error : InvalidContent([{ path: "", message }]))
      })
    )
  )
  // TypeScript cannot remove the handled errors from a union with a generic error type.
  return run as Effect.Effect<A, Exclude<E, SqlError> | InvalidContent | Unavailable>
}

/** The key of the advisory lock of workspace `$1`, which imports, edits and its deletion take. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"

/** Takes the lock of workspace `$1` until the transaction ends. Waits while another transaction holds the lock. */
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`

/** Takes the lock like `lockWorkspace`, but does not wait: returns no row if another transaction holds the lock. */
export const tryLockWorkspace = `select where pg_try_advisory_xact_lock(${lockKey})`
