import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"

const makeDirectory = (prefix: string): string => mkdtempSync(join(tmpdir(), prefix))

// A process that is ending can still create files in the directory.
const removeDirectory = (directory: string): void =>
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 })

/** Creates a temporary directory. Closing the scope removes the directory. */
export const temporaryDirectory = (prefix: string) =>
  Effect.acquireRelease(
    Effect.sync(() => makeDirectory(prefix)),
    (directory) => Effect.sync(() => removeDirectory(directory))
  )

const directories: Array<string> = []

/** Creates a temporary directory, and removes the directory at the end of the test file. */
export const makeTestDirectory = (prefix: string): string => {
  const directory = makeDirectory(prefix)
  directories.push(directory)
  return directory
}

export const removeTestDirectories = (): void => directories.splice(0).forEach(removeDirectory)
