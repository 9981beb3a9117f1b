import type * as Effect from "effect/Effect"
import { afterAll, beforeAll } from "vitest"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import { connectTo, makeResources } from "./database.ts"
import { freshName, makeMigratedDatabase, toDatabaseUrl } from "./postgres.ts"

type Connection = Effect.Success<ReturnType<typeof connectTo>>

/**
 * Creates a migrated database with these workspaces for the tests of the file or the suite that calls this function.
 * Returns the name of the database, the variables that select it, and functions that use it directly.
 */
export const makeTestDatabase = (archives: ReadonlyArray<Archive> = []) => {
  const resources = makeResources()
  const name = freshName()
  const env = { DATABASE_URL: toDatabaseUrl(name) }
  let connection: Connection
  beforeAll(async () => {
    await resources.acquire(makeMigratedDatabase(name))
    connection = await resources.acquire(connectTo(env))
    for (const archive of archives) await connection.importArchive(archive)
  })
  afterAll(() => resources.release())
  return {
    name,
    env,
    sql: (...query: Parameters<Connection["sql"]>) => connection.sql(...query),
    importArchive: (archive: Archive) => connection.importArchive(archive)
  }
}
