import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, expect } from "vitest"
import { removeTestDirectories } from "../testDirectory.ts"

// A test file fails if one of its timers, servers, connections or child processes still keeps this process alive at its
// end. `startService.ts` checks services in the same way.

/** Lists the active resources except pipes, which belong to this process (stdin) or to a listed child process. */
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
