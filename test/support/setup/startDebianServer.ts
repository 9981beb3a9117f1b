import { freshCluster } from "../database/cluster.ts"
import { makeResources } from "../makeResources.ts"

/** Provides a server of Debian's PostgreSQL to the tests, unless TEST_DATABASE_URL names another server. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env.TEST_DATABASE_URL !== undefined) return undefined
  const { acquire, release } = makeResources()
  const cluster = await acquire(freshCluster)
  await cluster.start(["max_connections=300"])
  process.env.TEST_DATABASE_URL = cluster.url
  return release
}
