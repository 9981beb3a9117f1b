import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { makeStateLog } from "../../../application/StateLog.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import { toTimestamp } from "../../../domain/Timestamp.ts"
import { describeSqlError } from "./connection/SqlErrors.ts"
import { updateLastUsed } from "./KeyQueries.ts"

/** The use of one key is written at most this often, in milliseconds. */
const writeInterval = 60_000

/** Maximum number of keys whose use is not written yet; bounds memory while PostgreSQL is unavailable. */
const maxPendingKeys = 100_000

const writeTimeout = "2 seconds"

/** Collects when keys were used and writes it in the background. */
export interface KeyUsageWriter {
  /** Records that a key was used at `now`, in milliseconds since the epoch. */
  readonly record: (id: ApiKeyId, now: number) => void
  /** Writes what was recorded. Never fails: a failed write is dropped, and one line is logged until a write succeeds. */
  readonly flush: Effect.Effect<void>
}

export const makeKeyUsageWriter: Effect.Effect<KeyUsageWriter, never, PgClient.PgClient> = Effect.gen(
  function* () {
    const sql = yield* PgClient.PgClient
    const pending = new Map<ApiKeyId, number>()
    /** When the use of keys was last written, the earliest first. */
    const written = new Map<ApiKeyId, number>()
    const stateLog = makeStateLog({ failed: "Could not persist last_used_at" })

    const forgetWrittenBefore = (time: number): void => {
      for (const [id, usedAt] of written) {
        if (usedAt > time) return
        written.delete(id)
      }
    }

    /** Returns the pending keys ordered by id, so that the updates of two processes cannot deadlock. */
    const takePending = (): ReadonlyArray<readonly [ApiKeyId, number]> => {
      const uses = [...pending].sort(([a], [b]) => (a < b ? -1 : 1))
      pending.clear()
      for (const [id, usedAt] of uses) {
        forgetWrittenBefore(usedAt - writeInterval)
        written.delete(id)
        written.set(id, usedAt)
      }
      return uses
    }

    const write = (uses: ReadonlyArray<readonly [ApiKeyId, number]>) => {
      const { text, params } = updateLastUsed(uses.map(([id, usedAt]) => [id, toTimestamp(usedAt)]))
      return Effect.timeout(sql.unsafe(text, params), writeTimeout)
    }

    return {
      record: (id, now) => {
        if (now < (written.get(id) ?? -writeInterval) + writeInterval) return
        if (pending.size < maxPendingKeys || pending.has(id)) pending.set(id, now)
      },
      flush: Effect.suspend(() =>
        pending.size === 0
          ? Effect.void
          : Effect.matchEffect(write(takePending()), {
              onSuccess: () => stateLog.up,
              onFailure: (error) =>
                stateLog.down(
                  isSqlError(error) ? describeSqlError(error) : "PostgreSQL did not respond in time"
                )
            })
      )
    }
  }
)
