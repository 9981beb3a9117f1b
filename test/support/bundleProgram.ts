import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

/** Builds the program that users run for the processes that tests start, and removes it after the last test. */
export const setup = (): (() => void) | undefined => {
  // Each project of vitest has its own set-up; the first one builds the program.
  if (process.env.TEST_PROGRAM !== undefined) return undefined
  // Inside the checkout, so that the program finds the packages with the programs of PostgreSQL.
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
