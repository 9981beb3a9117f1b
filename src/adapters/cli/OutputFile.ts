import { constants, createWriteStream, fstatSync, openSync, type Stats } from "node:fs"
import { type FileHandle, open, readlink, realpath, rename, stat } from "node:fs/promises"
import { Socket } from "node:net"
import { basename, dirname, join, resolve } from "node:path"
import { setTimeout } from "node:timers/promises"

type StandardStream = typeof process.stdout | typeof process.stderr

/** What `--out` names. */
export type Output =
  /** A regular file, or none yet: it is replaced as a whole. `path` has no symbolic link at its end. */
  | { readonly kind: "file"; readonly path: string; readonly existing: Stats | undefined }
  /** A device, a FIFO or a socket: it is written into. */
  | { readonly kind: "special"; readonly path: string; readonly isFifo: boolean }
  /** What this process has open as its standard output or standard error. */
  | { readonly kind: "standard"; readonly stream: StandardStream }

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

/** As many links as Linux follows. */
const maxLinks = 40

/** The path at the end of a chain of symbolic links, whose last target need not exist. */
const followLinks = async (path: string, links = 0): Promise<string> => {
  if (links > maxLinks) throw new Error("it has too many symbolic links")
  const directory = await realpath(dirname(path))
  const real = join(directory, basename(path))
  try {
    return await followLinks(resolve(directory, await readlink(real)), links + 1)
  } catch (error) {
    // EINVAL: it is not a link.
    if (["EINVAL", "ENOENT"].includes(codeOf(error) ?? "")) return real
    throw error
  }
}

const isOpenAs = ({ dev, ino }: Stats, { fd }: StandardStream): boolean => {
  const opened = fstatSync(fd)
  return opened.dev === dev && opened.ino === ino
}

/** Looks at what is at a path before anything is written there. */
export const inspectOutput = async (path: string): Promise<Output> => {
  const existing = await stat(path).catch((error) => {
    if (codeOf(error) === "ENOENT") return undefined
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

/** How often a FIFO without a reader is tried again, in milliseconds. */
const readerInterval = 50

/** Opens a FIFO once it has a reader. A blocking open would hold a thread that not even an exit gets rid of. */
const openFifo = async (path: string, signal: AbortSignal): Promise<number> => {
  for (;;) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      // ENXIO: nothing reads it.
      if (codeOf(error) !== "ENXIO") throw error
    }
    await setTimeout(readerInterval, undefined, { signal })
  }
}

/** A stream into a device or a FIFO. It creates nothing and truncates nothing. */
export const openSpecial = async (
  { path, isFifo }: Extract<Output, { kind: "special" }>,
  signal: AbortSignal
): Promise<NodeJS.WritableStream> =>
  isFifo
    ? new Socket({ fd: await openFifo(path, signal), readable: false, writable: true })
    : createWriteStream(path, { flags: constants.O_WRONLY as never })

/** Gives a new file the permissions, and where this process may, the owner of the file that it will replace. */
export const copyOwnership = async (handle: FileHandle, { uid, gid, mode }: Stats): Promise<void> => {
  const created = await handle.stat()
  if (created.uid !== uid || created.gid !== gid) {
    await handle
      .chown(uid, gid)
      .catch(() => handle.chown(created.uid, gid))
      .catch(() => {})
  }
  // Permissions of a group are not for another group.
  const sameGroup = (await handle.stat()).gid === gid
  await handle.chmod(mode & (sameGroup ? 0o777 : 0o707))
}

/** Moves a whole file to its place, so that a power failure leaves the old file or the new one. */
export const moveIntoPlace = async (file: string, target: string): Promise<void> => {
  await rename(file, target)
  const directory = await open(dirname(target), "r")
  try {
    await directory.sync()
  } catch {
    // Not every file system can sync a directory. The file is in its place.
  } finally {
    await directory.close()
  }
}
