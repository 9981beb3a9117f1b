import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** The tables that prompt reads use, except tables that key lookups also use. */
export const promptTables =
  "prompts, prompt_tags, tags, folders, prompt_versions, fragments, prompt_fragments" as const

/** Locks tables against all other sessions, readers included, and returns a function that releases the lock. */
export const lockTables = async (databaseUrl: string, tables: string): Promise<() => Promise<void>> => {
  const locked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holder = Effect.runPromise(
    Effect.flatMap(PgClient.PgClient, (sql) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql.unsafe(`lock table ${tables} in access exclusive mode`)
          locked.resolve()
          yield* Effect.promise(() => release.promise)
        })
      )
    ).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(databaseUrl) })))
  )
  await Promise.race([locked.promise, holder])
  return async () => {
    release.resolve()
    await holder
  }
}
