import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync
} from "node:fs"
import { join } from "node:path"
import { CommandError } from "./CommandError.ts"

/** A file to write: its name and the pieces of its content. */
export interface OutputFile {
  readonly name: string
  readonly pieces: Iterable<string | Uint8Array>
}

const describe = (error: unknown): string => (error as Error).message

/** Reads a file. Returns `undefined` if there is none. */
export const readIfExists = (directory: string, name: string): Buffer | undefined => {
  try {
    return readFileSync(join(directory, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw new CommandError(`Cannot read ${name}: ${describe(error)}`)
  }
}

/** How many bytes are written at once, except for longer pieces. */
const blockSize = 65_536

/** Writes a new file and flushes it to disk. */
const writeNewFile = (path: string, pieces: Iterable<string | Uint8Array>): void => {
  const file = openSync(path, "wx")
  const write = (bytes: Uint8Array) => {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
  }
  try {
    const block = Buffer.allocUnsafe(blockSize)
    let size = 0
    for (const piece of pieces) {
      const bytes = typeof piece === "string" ? Buffer.from(piece) : piece
      if (size + bytes.length > block.length) {
        write(block.subarray(0, size))
        size = 0
      }
      if (bytes.length > block.length) {
        write(bytes)
      } else {
        block.set(bytes, size)
        size += bytes.length
      }
    }
    write(block.subarray(0, size))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Replaces all the given files of a directory or, if one cannot be written, none.
 * After a power failure during the last step, some files may be new and others old; each is complete.
 */
export const writeFiles = (directory: string, files: ReadonlyArray<OutputFile>): void => {
  const toPath = (name: string, suffix: string) => join(directory, `.${name}.${process.pid}.${suffix}`)
  const replaced: Array<{ readonly name: string; readonly hadBackup: boolean }> = []
  try {
    mkdirSync(directory, { recursive: true })
    for (const { name, pieces } of files) writeNewFile(toPath(name, "new"), pieces)
    for (const { name } of files) {
      const hadBackup = backUp(join(directory, name), toPath(name, "old"))
      renameSync(toPath(name, "new"), join(directory, name))
      replaced.push({ name, hadBackup })
    }
  } catch (error) {
    for (const { name, hadBackup } of replaced) {
      if (hadBackup) renameSync(toPath(name, "old"), join(directory, name))
      else rmSync(join(directory, name), { force: true })
    }
    throw new CommandError(`Cannot write to the directory of --out: ${describe(error)}`)
  } finally {
    for (const { name } of files) {
      for (const suffix of ["new", "old"]) rmSync(toPath(name, suffix), { force: true })
    }
  }
}

/** Links a file to a second path or, where links are not possible, copies it. Returns false if there is no file. */
const backUp = (path: string, backup: string): boolean => {
  try {
    linkSync(path, backup)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false
    copyFileSync(path, backup, constants.COPYFILE_EXCL)
    return true
  }
}
