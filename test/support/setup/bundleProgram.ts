import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../..")

/**
 * Builds the bundle that users run, from which tests start their processes. Returns a function that removes the bundle
 * after the last test.
 */
export const setup = (): (() => void) => {
  // The program is inside the checkout, so that it finds the packages that contain PostgreSQL.
  const cache = join(root, "node_modules/.cache")
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, "test-program-"))
  execFileSync("npm", ["run", "build:program", "--", `--outdir=${directory}`], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"]
  })
  process.env.TEST_PROGRAM = join(directory, "main.js")
  return () => rmSync(directory, { recursive: true, force: true })
}
