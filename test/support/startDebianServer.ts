import { freshCluster } from "./cluster.ts"
import { makeResources } from "./database.ts"

/** Provides a server of Debian's PostgreSQL to the tests, unless TEST_DATABASE_URL names another server. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env.TEST_DATABASE_URL !== undefined) return undefined
  const resources = makeResources()
  const cluster = await resources.acquire(freshCluster)
  await cluster.start()
  process.env.TEST_DATABASE_URL = cluster.url
  return resources.release
}
