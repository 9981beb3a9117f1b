import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { dirname, join, resolve } from "node:path"
import type { DatabaseSync } from "node:sqlite"
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

const isExistsError = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "EEXIST"

/**
 * Creates a directory and its parents if they are missing. Does not use Node's option `recursive`, which never returns
 * for a path below /proc.
 */
const makeDirectories = (path: string): void => {
  if (existsSync(path)) return
  makeDirectories(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process created the directory first.
    if (!isExistsError(error)) throw error
  }
}

const makeDirectory = (path: string): void => {
  makeDirectories(path)
  if (!statSync(path).isDirectory()) throw new Error("it is not a directory")
  accessSync(path, constants.W_OK)
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
 * the process is killed. Then writes the id of this process to the pid file. Follows no links in the directory, because
 * the directory of a process of root may belong to another user.
 */
const lockDirectory = async (path: string): Promise<DatabaseSync> => {
  const sqlite = await import("node:sqlite")
  const lock = join(path, "lock")
  if (lstatSync(lock, { throwIfNoEntry: false })?.isSymbolicLink()) throw new Error("its file lock is a link")
  const database = new sqlite.DatabaseSync(lock, { timeout: 0 })
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    rmSync(toPidFile(path), { force: true })
    writeFileSync(toPidFile(path), `${process.pid}\n`, { flag: "wx" })
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
          makeDirectory(path)
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
