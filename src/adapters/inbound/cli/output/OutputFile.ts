import { randomUUID } from "node:crypto"
import { existsSync, fstatSync, type Stats, statSync } from "node:fs"
import { chmod, chown, realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import { type CommandError, makeWriteError } from "./CommandError.ts"

type Chunks = ReadonlyArray<Uint8Array>

/** Returns true if a path names the file, the pipe or the device that is standard output, such as `/dev/stdout`. */
export const isStdout = (path: string): boolean => {
  if (!existsSync(path)) return false
  const [named, stdout] = [statSync(path), fstatSync(process.stdout.fd)]
  return named.dev === stdout.dev && named.ino === stdout.ino
}

/** Ignores the error of a path that does not exist, and throws any other error. */
const ignoreMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== "ENOENT") throw error
}

/**
 * Copies the permissions of an existing file to its replacement and, if the system permits it, also the owner and
 * group. If the replacement still has a different group, this group gets no permissions, because the permissions are
 * for the original group.
 */
const copyOwnership = async (file: string, { uid, gid, mode }: Stats): Promise<void> => {
  await chown(file, uid, gid)
    .catch(() => chown(file, -1, gid))
    .catch(() => {})
  const isSameGroup = (await stat(file)).gid === gid
  await chmod(file, mode & (isSameGroup ? 0o777 : 0o707))
}

/** Creates a file or replaces the file that `path` names, also through a link. A failure changes no existing file. */
const replaceFile = async (path: string, existing: Stats | undefined, chunks: Chunks): Promise<void> => {
  const target = existing === undefined ? resolve(path) : await realpath(path)
  const file = join(dirname(target), `.export-${randomUUID()}`)
  try {
    await writeFile(file, chunks, { flag: "wx", mode: 0o600, flush: true })
    if (existing !== undefined) await copyOwnership(file, existing)
    await rename(file, target)
  } catch (error) {
    await rm(file, { force: true })
    throw error
  }
}

/**
 * Creates a file, or replaces a regular file atomically. Fails if the path names something else, such as a directory.
 */
export const writeOutput = (path: string, chunks: Chunks): Effect.Effect<void, CommandError> =>
  Effect.tryPromise({
    try: async () => {
      const existing = await stat(path).catch(ignoreMissing)
      if (existing?.isFile() === false)
        throw new Error(existing.isDirectory() ? "it is a directory" : "it is not a regular file")
      await replaceFile(path, existing, chunks)
    },
    catch: (error) => makeWriteError(path, error)
  }).pipe(Effect.uninterruptible)
