import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"

const socketName = ".s.PGSQL.5432"
/** The longest path that Linux accepts for a socket, in bytes. */
const maxPathBytes = 107

/** The prefix of a private directory for a socket whose path in the data directory would be too long. */
const privatePrefix = "prompt-retrieval-socket-"

/** The file that holds the socket's path if the socket is not in the data directory. */
const socketPointerFile = (dataDir: string): string => join(dataDir, "socket")

/** Finds the socket of the process that serves a data directory; it may not exist. */
export const findSocketPath = (dataDir: string): string => {
  const path = join(dataDir, socketName)
  if (Buffer.byteLength(path) <= maxPathBytes) return path
  const pointer = socketPointerFile(dataDir)
  return existsSync(pointer) ? readFileSync(pointer, "utf8") : path
}

/** Removes the socket of this process or of an earlier owner. Only the owner of the directory may call this. */
export const removeSocket = (dataDir: string): void => {
  const path = findSocketPath(dataDir)
  rmSync(path, { force: true })
  rmSync(socketPointerFile(dataDir), { force: true })
  if (basename(dirname(path)).startsWith(privatePrefix))
    rmSync(dirname(path), { recursive: true, force: true })
}

/** Chooses a free path for the socket: in the data directory, or in a private one if the path would be too long. */
export const chooseSocketPath = (dataDir: string): string => {
  removeSocket(dataDir)
  const path = join(dataDir, socketName)
  if (Buffer.byteLength(path) <= maxPathBytes) return path
  const privatePath = join(mkdtempSync(join(tmpdir(), privatePrefix)), socketName)
  writeFileSync(socketPointerFile(dataDir), privatePath)
  return privatePath
}
