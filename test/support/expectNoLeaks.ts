import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, expect } from "vitest"
import { takeLeaks } from "./leaks.ts"
import { removeTestDirectories } from "./testDirectory.ts"

// Rules that hold after each test file: no service of the file has written a secret, and no timer, server, connection
// or child process of the file keeps this process alive. `service.ts` expects the same of the services.

/** The pipes are those of this process, such as stdin. A child process is a resource itself. */
const listResources = (): Array<string> =>
  process.getActiveResourcesInfo().filter((resource) => resource !== "PipeWrap")

let before: ReadonlyArray<string>
beforeAll(() => {
  before = listResources()
})

afterAll(removeTestDirectories)

afterAll(async () => {
  expect(takeLeaks()).toEqual([])
  const listLeft = () => {
    const left = listResources()
    for (const resource of before) if (left.includes(resource)) left.splice(left.indexOf(resource), 1)
    return left
  }
  // A connection needs some turns of the event loop to close.
  for (let tries = 0; tries < 100 && listLeft().length > 0; tries++) await setTimeout(50)
  expect(listLeft(), "still active").toEqual([])
})
