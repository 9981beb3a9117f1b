import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { open } from "../../../src/adapters/outbound/postgres/embedded/EmbeddedPostgres.ts"
import { migrate } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { connect, freshName, onServer } from "../database/server.ts"
import { temporaryDirectory } from "../testDirectory.ts"

/** The settings of the server, for speed and for tests that run at the same time. */
const settings = [
  "fsync = off",
  "full_page_writes = off",
  "synchronous_commit = off",
  "max_wal_size = '4GB'",
  "max_connections = 200"
]

/** Runs the embedded PostgreSQL for the tests. */
const startEmbedded = Effect.gen(function* () {
  const directory = yield* temporaryDirectory("test-server-")
  const openServer = Effect.map(open({ dataDir: directory }), ({ url }) => {
    process.env.TEST_DATABASE_URL = Redacted.value(url)
  })
  yield* openServer.pipe(
    Effect.andThen(Effect.forEach(settings, (setting) => onServer(`alter system set ${setting}`))),
    Effect.scoped
  )
  // Some settings take effect only when the server starts.
  yield* openServer
})

/** Creates the template database, which has every table. `migratedDatabase` copies the template. */
const createTemplate = Effect.acquireRelease(
  Effect.gen(function* () {
    const name = freshName()
    yield* onServer(`create database ${name} template template0`)
    yield* Effect.provide(migrate, connect(name))
    process.env.TEST_TEMPLATE_DATABASE = name
    return name
  }),
  (name) => onServer(`drop database ${name} with (force)`)
)

/**
 * Provides the PostgreSQL server that tests share: the embedded server, or the server of TEST_DATABASE_URL. After the
 * last test, the template database is dropped, and an embedded server is stopped and removed.
 */
export const setup = async (): Promise<() => Promise<void>> => {
  const scope = Scope.makeUnsafe()
  const start = process.env.TEST_DATABASE_URL === undefined ? startEmbedded : Effect.void
  await Effect.runPromise(Scope.provide(Effect.andThen(start, createTemplate), scope))
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
