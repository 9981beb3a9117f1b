import { randomUUID } from "node:crypto"
import { constants, createWriteStream, existsSync, fstatSync, openSync, statSync, type Stats } from "node:fs"
import { chmod, chown, realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { Socket } from "node:net"
import { dirname, join, resolve } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { setTimeout } from "node:timers/promises"
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
export const ignoreMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== "ENOENT") throw error
}

/** Opens a FIFO once it has a reader. A blocking open would occupy a thread, and the process could not exit. */
const openFifo = async (path: string, signal: AbortSignal): Promise<number> => {
  for (;;) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      // ENXIO: the FIFO has no reader.
      if ((error as NodeJS.ErrnoException).code !== "ENXIO") throw error
    }
    await setTimeout(50, undefined, { signal })
  }
}

/** Writes to a device, a FIFO or a socket. Neither creates nor truncates a file. */
const writeInPlace = async (path: string, existing: Stats, chunks: Chunks, signal: AbortSignal) => {
  const stream = existing.isFIFO()
    ? new Socket({ fd: await openFifo(path, signal), readable: false, writable: true })
    : createWriteStream(path, { flags: constants.O_WRONLY as never })
  await pipeline(Readable.from(chunks), stream, { signal })
}

/**
 * Gives a file the permissions of the file that it will replace and, if the system permits it, the owner and group. If
 * the groups still differ, the group gets no permissions, because they would apply to a different group.
 */
const copyOwnership = async (file: string, { uid, gid, mode }: Stats): Promise<void> => {
  await chown(file, uid, gid)
    .catch(() => chown(file, -1, gid))
    .catch(() => {})
  const isSameGroup = (await stat(file)).gid === gid
  await chmod(file, mode & (isSameGroup ? 0o777 : 0o707))
}

/** Creates a file, or replaces an existing file or the target of a link. A failure leaves the existing file unchanged. */
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

/** Writes to a path: replaces a regular file atomically, and writes in place to anything else except a directory. */
export const writeOutput = Effect.fnUntraced(function* (path: string, chunks: Chunks) {
  const toError = (error: unknown): CommandError => makeWriteError(path, error)
  const attempt = <A>(step: (signal: AbortSignal) => Promise<A>) =>
    Effect.tryPromise({ try: step, catch: toError })
  const existing = yield* attempt(() => stat(path).catch(ignoreMissing))
  if (existing?.isDirectory() === true) return yield* Effect.fail(toError(new Error("it is a directory")))
  yield* existing?.isFile() === false
    ? attempt((signal) => writeInPlace(path, existing, chunks, signal))
    : Effect.uninterruptible(attempt(() => replaceFile(path, existing, chunks)))
})
