import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { freshCluster } from "../database/cluster.ts"

/** Provides a server of Debian's PostgreSQL to the tests, unless TEST_DATABASE_URL names another server. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env.TEST_DATABASE_URL !== undefined) return undefined
  const scope = Scope.makeUnsafe()
  const cluster = await Effect.runPromise(Scope.provide(freshCluster, scope))
  await cluster.start(["max_connections=300"])
  process.env.TEST_DATABASE_URL = cluster.url
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
