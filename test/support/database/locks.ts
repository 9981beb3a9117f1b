import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { makeResources } from "../makeResources.ts"
import { connectClient } from "./server.ts"

/** The tables that are used by reads of prompts, but not by lookups of keys. */
export const promptTables =
  "prompts, prompt_tags, tags, folders, prompt_versions, fragments, prompt_fragments" as const

/** Executes statements in a transaction that stays open. Returns an effect that commits the transaction. */
export const holdLocks = Effect.fnUntraced(function* (
  client: PgClient,
  ...statements: ReadonlyArray<readonly [text: string, params: ReadonlyArray<unknown>]>
) {
  const [held, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const fiber = yield* Effect.forkScoped(
    client.withTransaction(
      Effect.gen(function* () {
        for (const [text, params] of statements) yield* client.unsafe(text, params)
        yield* Deferred.succeed(held, undefined)
        yield* Deferred.await(release)
      })
    )
  )
  yield* Effect.raceFirst(Deferred.await(held), Fiber.join(fiber))
  return Effect.andThen(Deferred.succeed(release, undefined), Fiber.join(fiber))
})

/** Locks tables against all other sessions, readers included, and returns a function that releases the lock. */
export const lockTables = async (databaseUrl: string, tables: string): Promise<() => Promise<void>> => {
  const { acquire, release } = makeResources()
  const statement = `lock table ${tables} in access exclusive mode`
  const unlock = await acquire(
    Effect.orDie(Effect.flatMap(connectClient(databaseUrl), (client) => holdLocks(client, [statement, []])))
  )
  return async () => {
    await Effect.runPromise(Effect.orDie(unlock))
    await release()
  }
}

const selectBlocked = `select from pg_stat_activity where datname = current_database()
  and cardinality(pg_blocking_pids(pid)) > 0`

const waitForRows = (rows: Effect.Effect<ReadonlyArray<unknown>, unknown>): Effect.Effect<void> => {
  const poll: Effect.Effect<void> = Effect.flatMap(Effect.orDie(rows), ({ length }) =>
    length > 0 ? Effect.void : Effect.andThen(Effect.sleep("20 millis"), poll)
  )
  return Effect.orDie(Effect.timeout(poll, "20 seconds"))
}

/** Waits until a connection of the client's database waits for a lock of another connection. */
export const waitForBlocked = (client: PgClient): Effect.Effect<void> =>
  waitForRows(client.unsafe(selectBlocked))

/** Like `waitForBlocked`, but returns a promise. `sql` runs a statement in the database. */
export const waitForBlockedQuery = (sql: (text: string) => Promise<ReadonlyArray<unknown>>): Promise<void> =>
  Effect.runPromise(waitForRows(Effect.promise(() => sql(selectBlocked))))

/**
 * Runs a write during a transaction of another client. Commits the transaction once the write waits for a lock. Returns
 * the result of the write.
 */
export const writeDuring = Effect.fnUntraced(function* <A, E, R>(
  client: PgClient,
  statements: ReadonlyArray<readonly [text: string, params: ReadonlyArray<unknown>]>,
  write: Effect.Effect<A, E, R>
) {
  const commit = yield* holdLocks(client, ...statements)
  const writer = yield* Effect.forkScoped(Effect.result(write))
  yield* waitForBlocked(client)
  yield* commit
  return yield* Fiber.join(writer)
})
