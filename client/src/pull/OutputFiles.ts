import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { CommandError } from "./CommandError.ts"

/** Reads a file, and converts its line endings to LF. Returns `undefined` if the file does not exist. */
export const readText = (directory: string, name: string): string | undefined => {
  try {
    return readFileSync(join(directory, name), "utf8").replaceAll("\r\n", "\n")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw new CommandError(`cannot read ${name}: ${(error as Error).message}`)
  }
}

/**
 * Replaces the given files of a directory. If a text cannot be written, replaces no file. After a power failure, some
 * files can be new and others old, but each file is complete.
 */
export const writeFiles = (directory: string, files: ReadonlyMap<string, string>): void => {
  const toTemporary = (name: string) => join(directory, `.${name}.${process.pid}.new`)
  try {
    mkdirSync(directory, { recursive: true })
    for (const [name, text] of files) writeFileSync(toTemporary(name), text, { flag: "wx", flush: true })
    for (const name of files.keys()) renameSync(toTemporary(name), join(directory, name))
  } catch (error) {
    throw new CommandError(`cannot write to the directory of --out: ${(error as Error).message}`)
  } finally {
    for (const name of files.keys()) rmSync(toTemporary(name), { force: true })
  }
}
