import type * as Effect from "effect/Effect"
import { beforeAll } from "vitest"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { makeAcquire } from "../makeAcquire.ts"
import { connectTo } from "./connection.ts"
import { freshName, makeMigratedDatabase, toDatabaseUrl } from "./server.ts"

type Connection = Effect.Success<ReturnType<typeof connectTo>>

/**
 * Creates a migrated database with these workspaces for the tests of the file or the suite that calls this function.
 * Returns the name of the database, the variables that select the database, `acquire` of `makeAcquire`, and functions
 * that use the database directly.
 */
export const makeTestDatabase = (archives: ReadonlyArray<Archive> = []) => {
  const acquire = makeAcquire()
  const name = freshName()
  const env = { DATABASE_URL: toDatabaseUrl(name) }
  let connection: Connection
  beforeAll(async () => {
    await acquire(makeMigratedDatabase(name))
    connection = await acquire(connectTo(env))
    for (const archive of archives) await connection.importArchive(archive)
  })
  return {
    name,
    env,
    acquire,
    sql: (...query: Parameters<Connection["sql"]>) => connection.sql(...query),
    importArchive: (archive: Archive) => connection.importArchive(archive)
  }
}
