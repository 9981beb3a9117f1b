import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { SqlClient } from "effect/sql/SqlClient"
import { Actor, Administration, administrationLayer } from "../../../src/administration.ts"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { type DatabaseOptions, databaseLayer } from "../../../src/index.ts"
import { recordImported } from "../services/secrets.ts"
import { freshDatabase, toDatabaseUrl } from "./server.ts"

/** Creates an empty database. Returns the variable that selects the database. Closing the scope drops the database. */
export const postgresEnv = Effect.map(
  freshDatabase,
  (name): Record<string, string> => ({ DATABASE_URL: toDatabaseUrl(name) })
)

const toDatabaseOptions = (env: Readonly<Record<string, string>>): DatabaseOptions => ({
  url: Redacted.make(env.DATABASE_URL ?? `postgres://postgres@localhost/postgres?host=${env.DATA_DIR}`)
})

/** Connects directly to the database that environment variables select, not through a service. */
export const connectTo = (env: Readonly<Record<string, string>>) =>
  Effect.map(
    Layer.build(
      administrationLayer.pipe(
        Layer.provide(Layer.succeed(Actor, "unknown")),
        Layer.provideMerge(databaseLayer(toDatabaseOptions(env)))
      )
    ),
    (context) => ({
      importArchive: (archive: Archive): Promise<unknown> => {
        recordImported(archive)
        return Effect.runPromise(
          Effect.flatMap(Administration, (administration) => administration.importArchive(archive)).pipe(
            Effect.provideContext(context)
          )
        )
      },
      sql: (text: string, params: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<unknown>> =>
        Effect.runPromise(
          Effect.flatMap(SqlClient, (sql) => sql.unsafe(text, params)).pipe(Effect.provideContext(context))
        )
    })
  )
