import { globSync } from "node:fs"
import { join } from "node:path"

/** The folder of a separate package for tools. The tools need more than 500 packages and old versions of TypeScript. */
export const toolsDirectory = join(import.meta.dirname, "../../tools")

/** Returns the path of an installed file of the tools, such as a program. `*` matches a part of a name. */
export const findTool = (pattern: string): string => {
  const [path] = globSync(join(toolsDirectory, "node_modules", pattern))
  if (path === undefined) throw new Error(`npm ci --prefix test/tools has not installed ${pattern}`)
  return path
}
