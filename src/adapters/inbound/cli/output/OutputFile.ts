import { constants, createWriteStream, fstatSync, openSync, type Stats } from "node:fs"
import { type FileHandle, mkdtemp, open, readlink, realpath, rename, rm, stat } from "node:fs/promises"
import { Socket } from "node:net"
import { basename, dirname, join, resolve } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

type StandardStream = typeof process.stdout | typeof process.stderr

export type Output =
  /** A regular file that will be replaced, or a new file. The last segment of `path` is not a symbolic link. */
  | { readonly kind: "file"; readonly path: string; readonly existing: Stats | undefined }
  /** A device, a FIFO or a socket, which is written to in place. */
  | { readonly kind: "special"; readonly path: string; readonly isFifo: boolean }
  | { readonly kind: "standard"; readonly stream: StandardStream }

const getErrorCode = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

/** Linux's limit on the symbolic links of one path. */
const maxSymbolicLinks = 40

/** Resolves a chain of symbolic links. The last target need not exist. */
const followLinks = async (path: string, links = 0): Promise<string> => {
  if (links > maxSymbolicLinks) throw new Error("it has too many symbolic links")
  const directory = await realpath(dirname(path))
  const real = join(directory, basename(path))
  try {
    return await followLinks(resolve(directory, await readlink(real)), links + 1)
  } catch (error) {
    // EINVAL: the path is not a symbolic link.
    if (["EINVAL", "ENOENT"].includes(getErrorCode(error) ?? "")) return real
    throw error
  }
}

const isOpenAs = ({ dev, ino }: Stats, { fd }: StandardStream): boolean => {
  const opened = fstatSync(fd)
  return opened.dev === dev && opened.ino === ino
}

/** Determines the kind of output that a path names. Writes nothing. Throws for a directory. */
export const inspectOutput = async (path: string): Promise<Output> => {
  const existing = await stat(path).catch((error) => {
    if (getErrorCode(error) === "ENOENT") return undefined
    throw error
  })
  if (existing === undefined) return { kind: "file", path: await followLinks(resolve(path)), existing }
  if (existing.isDirectory()) throw new Error("it is a directory")
  const stream = [process.stdout, process.stderr].find((stream) => isOpenAs(existing, stream))
  if (stream !== undefined) return { kind: "standard", stream }
  return existing.isFile()
    ? { kind: "file", path: await followLinks(resolve(path)), existing }
    : { kind: "special", path, isFifo: existing.isFIFO() }
}

const fifoRetryIntervalMs = 50

/** Opens a FIFO once it has a reader. A blocking open would occupy a thread, and the process could not exit. */
const openFifo = async (path: string, signal: AbortSignal): Promise<number> => {
  for (;;) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      // ENXIO: the FIFO has no reader.
      if (getErrorCode(error) !== "ENXIO") throw error
    }
    await setTimeout(fifoRetryIntervalMs, undefined, { signal })
  }
}

/** Opens a stream into a device, a FIFO or a socket. Neither creates nor truncates a file. */
export const openSpecial = async (
  { path, isFifo }: Extract<Output, { kind: "special" }>,
  signal: AbortSignal
): Promise<NodeJS.WritableStream> =>
  isFifo
    ? new Socket({ fd: await openFifo(path, signal), readable: false, writable: true })
    : createWriteStream(path, { flags: constants.O_WRONLY as never })

/**
 * Gives a new file the permissions of the file that it will replace and, if the system permits it, the owner and group.
 * If the groups still differ, the group of the new file gets no permissions.
 */
export const copyOwnership = async (handle: FileHandle, { uid, gid, mode }: Stats): Promise<void> => {
  const created = await handle.stat()
  if (created.uid !== uid || created.gid !== gid) {
    await handle
      .chown(uid, gid)
      .catch(() => handle.chown(created.uid, gid))
      .catch(() => {})
  }
  // Group permissions must not apply to a different group.
  const isSameGroup = (await handle.stat()).gid === gid
  await handle.chmod(mode & (isSameGroup ? 0o777 : 0o707))
}

/** Renames a file to its target. After a power failure, the target is either the old file or the new file. */
export const moveIntoPlace = async (file: string, target: string): Promise<void> => {
  await rename(file, target)
  const directory = await open(dirname(target), "r")
  try {
    await directory.sync()
  } catch {
    // Some file systems cannot sync a directory. The rename has already succeeded.
  } finally {
    await directory.close()
  }
}

/**
 * Creates a directory that is removed with its contents when the scope closes. The path is `prefix` followed by random
 * characters. If the directory cannot be created, `toError` converts the error.
 */
export const makeTemporaryDirectory = <E>(
  prefix: string,
  toError: (error: unknown) => E
): Effect.Effect<string, E, Scope.Scope> =>
  Effect.acquireRelease(Effect.tryPromise({ try: () => mkdtemp(prefix), catch: toError }), (directory) =>
    Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
