import { closeSync, constants, mkdirSync, openSync } from "node:fs"
import { join, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { toMessage } from "../../../../application/ErrorMessage.ts"

/** Another process owns the data directory. */
export class DataDirectoryBusy extends Data.TaggedError("DataDirectoryBusy")<{ readonly path: string }> {
  override readonly message = `${this.path} is in use by another process`
}

/** The data directory is not a directory, is not writable, or has content that PostgreSQL cannot open. */
export class DataDirectoryUnusable extends Data.TaggedError("DataDirectoryUnusable")<{
  readonly path: string
  readonly cause: unknown
}> {
  override readonly message = `${this.path} cannot be used: ${toMessage(this.cause)}`
}

/** Returns true if SQLite reports SQLITE_BUSY (5), because another process has the lock. */
const isLockedError = (error: unknown): boolean =>
  (Number((error as { readonly errcode?: unknown }).errcode) & 0xff) === 5

/**
 * Locks a directory with an open SQLite transaction on a file in the directory. The kernel releases this lock even if
 * the process is killed. Does not create the file through a link: if this process runs as root, the link could come
 * from another user who owns the directory.
 */
const lockDirectory = (path: string): DatabaseSync => {
  const lock = join(path, "lock")
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  closeSync(openSync(lock, O_CREAT | O_NOFOLLOW | O_RDWR, 0o600))
  const url = pathToFileURL(lock)
  // With this mode, SQLite does not create the file.
  url.searchParams.set("mode", "rw")
  const database = new DatabaseSync(url, { timeout: 0 })
  try {
    database.exec("BEGIN EXCLUSIVE")
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
export const acquireDataDirectory = Effect.fnUntraced(function* (dataDir: string) {
  const path = resolve(dataDir)
  const lock = Effect.try({
    try: () => {
      mkdirSync(path, { recursive: true, mode: 0o700 })
      return lockDirectory(path)
    },
    catch: (cause) =>
      isLockedError(cause) ? new DataDirectoryBusy({ path }) : new DataDirectoryUnusable({ path, cause })
  })
  yield* Effect.acquireRelease(lock, (database) => Effect.sync(() => database.close()))
  return path
})
