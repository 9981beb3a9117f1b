import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { toMessage } from "../../../../application/observability/ErrorMessage.ts"

/** Another process owns the data directory. `pid` is undefined if that process has not written its id yet. */
export class DataDirectoryBusy extends Data.TaggedError("DataDirectoryBusy")<{
  readonly path: string
  readonly pid: number | undefined
}> {
  override readonly message =
    `${this.path} is in use by another process${this.pid === undefined ? "" : ` (pid ${this.pid})`}`
}

/**
 * The data directory cannot hold a database: it is not a directory or not writable, or its content cannot be opened.
 */
export class DataDirectoryUnusable extends Data.TaggedError("DataDirectoryUnusable")<{
  readonly path: string
  readonly cause: unknown
}> {
  override readonly message = `${this.path} cannot be used: ${toMessage(this.cause)}`
}

/** SQLITE_BUSY, the low byte of the error code when another process has the lock. */
const sqliteBusy = 5

const isLockedError = (error: unknown): boolean =>
  error instanceof Error &&
  "errcode" in error &&
  typeof error.errcode === "number" &&
  (error.errcode & 0xff) === sqliteBusy

/** Creates a file. Does nothing if the path exists, even if it is a link. */
const createFile = (path: string, text: string): void => {
  try {
    writeFileSync(path, text, { flag: "wx", mode: 0o600 })
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
  }
}

/**
 * Returns the path of the file that contains the process id of the owner, for error messages. Only the lock decides
 * which process owns the directory.
 */
const toPidFile = (path: string): string => join(path, "pid")

const readOwner = (path: string): number | undefined => {
  try {
    return Number.parseInt(readFileSync(toPidFile(path), "utf8"), 10) || undefined
  } catch {
    return undefined
  }
}

/**
 * Locks a directory with an open SQLite transaction on a file in the directory: the kernel releases the lock even if
 * the process is killed. Then writes the id of this process to the pid file. Creates and writes no file through a link,
 * because another user may own the directory of a process that runs as root.
 */
const lockDirectory = async (path: string): Promise<DatabaseSync> => {
  const sqlite = await import("node:sqlite")
  const lock = join(path, "lock")
  createFile(lock, "")
  // The error of SQLite would not say why it cannot open the file.
  accessSync(lock, constants.W_OK)
  const url = pathToFileURL(lock)
  // With this mode, SQLite does not create the file.
  url.searchParams.set("mode", "rw")
  const database = new sqlite.DatabaseSync(url, { timeout: 0 })
  try {
    database.exec("BEGIN EXCLUSIVE")
    rmSync(toPidFile(path), { force: true })
    createFile(toPidFile(path), `${process.pid}\n`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Makes this process the only owner of a data directory until the scope closes or the process ends, and returns the
 * directory's absolute path. Creates a missing directory, with access only for the user of this process.
 */
export const acquireDataDirectory = (
  dataDir: string
): Effect.Effect<string, DataDirectoryBusy | DataDirectoryUnusable, Scope.Scope> => {
  const path = resolve(dataDir)
  return Effect.as(
    Effect.acquireRelease(
      Effect.tryPromise({
        try: () => {
          mkdirSync(path, { recursive: true, mode: 0o700 })
          return lockDirectory(path)
        },
        catch: (cause) =>
          isLockedError(cause)
            ? new DataDirectoryBusy({ path, pid: readOwner(path) })
            : new DataDirectoryUnusable({ path, cause })
      }),
      (database) =>
        Effect.sync(() => {
          rmSync(toPidFile(path), { force: true })
          database.close()
        })
    ),
    path
  )
}
