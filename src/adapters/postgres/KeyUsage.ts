import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isSqlError } from "effect/sql/SqlError"
import type { ApiKeyId } from "../../domain/ApiKey.ts"
import { timestampOf } from "../../domain/Timestamp.ts"
import { reasonOf } from "./Database.ts"

/** One key's use is written at most this often, in milliseconds. */
const minute = 60_000
/** How many keys are remembered at most, so that memory stays bounded while PostgreSQL is away. */
const maxKeys = 100_000
const deadline = "2 seconds"

/** Skips keys that another transaction has locked: the other keys must not wait for that transaction. */
const update = `update api_keys k set last_used_at = used.used_at
  from (
    select own.id, u.used_at
    from unnest($1::uuid[], $2::timestamptz[]) u (id, used_at) join api_keys own on own.id = u.id
    where own.last_used_at is null or own.last_used_at < u.used_at
    for no key update of own skip locked
  ) used
  where k.id = used.id`

/** Remembers when keys were used, in milliseconds since the epoch, and writes it behind. */
export interface KeyUsage {
  readonly mark: (id: ApiKeyId, now: number) => void
  /** Writes what is remembered. Never fails: what could not be written is dropped, and one line logged until it works again. */
  readonly flush: Effect.Effect<void>
}

export const makeUsage: Effect.Effect<KeyUsage, never, PgClient.PgClient> = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const pending = new Map<ApiKeyId, number>()
  const written = new Map<ApiKeyId, number>()
  let works = true

  const forgetBefore = (time: number): void => {
    for (const [id, at] of written) {
      if (at > time) return
      written.delete(id)
    }
  }

  /** The keys in their order, so that the updates of two processes can't wait for each other. */
  const takePending = (): ReadonlyArray<readonly [ApiKeyId, number]> => {
    const taken = [...pending].sort(([a], [b]) => (a < b ? -1 : 1))
    pending.clear()
    for (const [id, at] of taken) {
      forgetBefore(at - minute)
      written.delete(id)
      written.set(id, at)
    }
    return taken
  }

  const write = (used: ReadonlyArray<readonly [ApiKeyId, number]>) =>
    sql
      .unsafe(update, [used.map(([id]) => id), used.map(([, at]) => timestampOf(at))])
      .pipe(Effect.timeout(deadline))

  return {
    mark: (id, now) => {
      if (now < (written.get(id) ?? -minute) + minute) return
      if (pending.size < maxKeys || pending.has(id)) pending.set(id, now)
    },
    flush: Effect.gen(function* () {
      if (pending.size === 0) return
      const outcome = yield* Effect.result(write(takePending()))
      if (works && Result.isFailure(outcome)) {
        const { failure } = outcome
        const reason = isSqlError(failure) ? reasonOf(failure) : "no answer in time"
        yield* Effect.logWarning(`The use of keys is not kept: ${reason}`)
      }
      works = Result.isSuccess(outcome)
    })
  }
})
