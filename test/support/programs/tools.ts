import { globSync } from "node:fs"
import { join } from "node:path"

/** The folder of a separate package for tools, which need 900 packages and old versions of TypeScript. */
export const toolsDirectory = join(import.meta.dirname, "../../tools")

/** Returns the path of a file that the tools install, such as a program of this platform. `*` matches part of a name. */
export const findTool = (pattern: string): string => {
  const [path] = globSync(join(toolsDirectory, "node_modules", pattern))
  if (path === undefined) throw new Error(`npm ci --prefix test/tools has not installed ${pattern}`)
  return path
}
