import { afterAll } from "vitest"
import { makeResources } from "./makeResources.ts"

/**
 * Returns a function that acquires a resource, such as a server. Releases the resources after the tests of the file or
 * the suite that calls `makeAcquire`.
 */
export const makeAcquire = () => {
  const { acquire, release } = makeResources()
  afterAll(release)
  return acquire
}
