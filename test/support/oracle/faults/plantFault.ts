import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { adaptConfig } from "../../programs.ts"

const sources = join(import.meta.dirname, "../../../../src")

/** A defect: texts of a source file, each with the text that replaces it. */
export interface Fault {
  /** The path below `src`. */
  readonly file: string
  readonly replacements: Readonly<Record<string, string>>
}

/** Runs `serve` with a defect. Throws if the file does not contain the texts that the defect replaces. */
export const serveWithFault = async ({ file, replacements }: Fault): Promise<void> => {
  const path = join(sources, file)
  const source = adaptConfig(readFileSync(path, "utf8"), replacements)
  const { href } = pathToFileURL(path)
  registerHooks({
    load: (url, context, nextLoad) =>
      url === href ? { format: "module-typescript", shortCircuit: true, source } : nextLoad(url, context)
  })
  const { main } = await import("../../../../src/runtime/CommandLine.ts")
  main(process.argv.slice(2))
}
