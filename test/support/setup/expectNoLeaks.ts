import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, expect } from "vitest"
import { removeTestDirectories } from "../testDirectory.ts"

// After each test file, none of its timers, servers, connections and child processes keeps this process alive.
// `startService.ts` expects the same of the services.

/** The pipes are those of this process, such as stdin. A child process is a resource itself. */
const listResources = (): Array<string> =>
  process.getActiveResourcesInfo().filter((resource) => resource !== "PipeWrap")

let before: ReadonlyArray<string>
beforeAll(() => {
  before = listResources()
})

afterAll(removeTestDirectories)

afterAll(async () => {
  const listLeft = () => {
    const left = listResources()
    for (const resource of before) if (left.includes(resource)) left.splice(left.indexOf(resource), 1)
    return left
  }
  // A connection needs some turns of the event loop to close.
  for (let tries = 0; tries < 100 && listLeft().length > 0; tries++) await setTimeout(50)
  expect(listLeft(), "still active").toEqual([])
})
