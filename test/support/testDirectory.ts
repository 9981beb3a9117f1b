import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"

/** Creates a temporary directory for the tests of the file or the suite that calls this function. */
export const makeTestDirectory = (prefix: string): string => {
  const directory = mkdtempSync(join(tmpdir(), prefix))
  afterAll(() => rmSync(directory, { recursive: true }))
  return directory
}
