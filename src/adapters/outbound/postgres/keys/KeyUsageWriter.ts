import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Iterable from "effect/Iterable"
import { isSqlError } from "effect/sql/SqlError"
import { makeStateLog } from "../../../../application/observability/StateLog.ts"
import type { ApiKeyId } from "../../../../domain/ApiKey.ts"
import { toTimestamp } from "../../../../domain/Timestamp.ts"
import { describeSqlError, isTemporary } from "../driver/SqlErrors.ts"

/** Maximum number of keys whose use is not written yet. Limits the memory for uses while PostgreSQL is unavailable. */
const maxPendingKeys = 100_000

/** Maximum number of keys of one statement. With more keys, PostgreSQL reads the whole table instead of an index. */
const maxKeysPerStatement = 256

const writeTimeout = "2 seconds"

/**
 * Writes the times `$2` at which the keys `$1` were last used. Ignores a time that is not later than the stored time.
 * Skips a key that another transaction has locked, so that the other keys do not wait for that transaction.
 */
const updateLastUsed = `update api_keys k set last_used_at = used.used_at
    from (
      select own.id, u.used_at
      from unnest($1::uuid[], $2::timestamptz[]) u (id, used_at) join api_keys own on own.id = u.id
      where own.last_used_at is null or own.last_used_at < u.used_at
      for no key update of own skip locked
    ) used
    where k.id = used.id`

/** Makes a writer that collects the times at which keys were last used, until `flush` writes the times. */
export const makeKeyUsageWriter = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const pending = new Map<ApiKeyId, number>()
  const stateLog = makeStateLog({ failed: "Could not persist last_used_at" })

  /** Records that a key was used at `now`, in milliseconds since the epoch. */
  const record = (id: ApiKeyId, now: number): void => {
    if (pending.size < maxPendingKeys || pending.has(id)) pending.set(id, now)
  }

  const write = (uses: ReadonlyArray<readonly [ApiKeyId, number]>) => {
    const ids = uses.map(([id]) => id)
    const times = uses.map(([, usedAt]) => toTimestamp(usedAt))
    return Effect.timeout(sql.unsafe(updateLastUsed, [ids, times]), writeTimeout)
  }

  const writePending: Effect.Effect<void> = Effect.suspend(() => {
    const uses = [...Iterable.take(pending, maxKeysPerStatement)]
    const takeAndWrite = Effect.suspend(() => {
      for (const [id] of uses) pending.delete(id)
      return write(uses)
    })
    const restore = Effect.sync(() => {
      for (const [id, usedAt] of uses) record(id, pending.get(id) ?? usedAt)
    })
    // The store interrupts a flush when the store closes. The last flush then writes the times of the interrupted flush.
    return Effect.matchEffect(
      Effect.onInterrupt(takeAndWrite, () => restore),
      {
        onSuccess: () => (pending.size === 0 ? stateLog.up : Effect.andThen(stateLog.up, writePending)),
        onFailure: (error) => {
          const log = stateLog.down(
            isSqlError(error) ? describeSqlError(error) : "PostgreSQL did not respond in time"
          )
          return !isSqlError(error) || isTemporary(error) ? Effect.andThen(restore, log) : log
        }
      }
    )
  })

  return {
    record,
    /**
     * Writes the recorded times, in several statements if there are many keys. Never fails. The first failed statement
     * ends the call. Logs only the first of several failures in a row. If PostgreSQL was unavailable or did not respond
     * in time, or if the call was interrupted, a later call writes the times of that statement. After any other error,
     * the writer drops these times.
     */
    flush: Effect.suspend(() => (pending.size === 0 ? Effect.void : writePending))
  }
})
