import { existsSync, globSync } from "node:fs"
import { join } from "node:path"

/** The folder of a package apart: its tools need 900 packages with 900 MB, and older versions of TypeScript. */
export const toolsDirectory = join(import.meta.dirname, "../tools")

/** The reason why the tools are not available; `undefined` if they are. Throws the reason if CI is set. */
export const findMissingTools = (): string | undefined => {
  if (existsSync(join(toolsDirectory, "node_modules"))) return undefined
  const missing = "they are not installed: npm ci --prefix test/tools"
  if (process.env.CI !== undefined) throw new Error(missing)
  console.warn(`Tests with the tools of test/tools are skipped: ${missing}`)
  return missing
}

/** Returns the path of a file that the tools install, such as a program of this platform. `*` matches part of a name. */
export const findTool = (pattern: string): string => {
  const [path] = globSync(join(toolsDirectory, "node_modules", pattern))
  if (path === undefined) throw new Error(`npm ci --prefix test/tools has not installed ${pattern}`)
  return path
}
