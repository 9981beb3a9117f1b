import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { open } from "../../../src/adapters/outbound/postgres/embedded/EmbeddedPostgres.ts"
import { migrate } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { connect, freshDatabase, onServer } from "../database/server.ts"
import { makeResources } from "../makeResources.ts"
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
const createTemplate = Effect.gen(function* () {
  const name = yield* freshDatabase
  yield* Effect.provide(migrate, connect(name))
  process.env.TEST_TEMPLATE_DATABASE = name
})

/**
 * Provides the PostgreSQL server that tests share: the embedded server, or the server of TEST_DATABASE_URL. After the
 * last test, drops the template database, and stops and removes an embedded server.
 */
export const setup = async (): Promise<() => Promise<void>> => {
  const { acquire, release } = makeResources()
  const start = process.env.TEST_DATABASE_URL === undefined ? startEmbedded : Effect.void
  await acquire(Effect.orDie(Effect.andThen(start, createTemplate)))
  return release
}
