import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const directories: Array<string> = []

/** Creates a temporary directory, which is removed at the end of the test file. */
export const makeTestDirectory = (prefix: string): string => {
  const directory = mkdtempSync(join(tmpdir(), prefix))
  directories.push(directory)
  return directory
}

export const removeTestDirectories = (): void => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
}
