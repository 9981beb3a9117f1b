import { mkdirSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Another process owns the data directory. */
export class DataDirectoryBusy extends Data.TaggedError("DataDirectoryBusy")<{ readonly path: string }> {
  override readonly message = `${this.path} is in use by another process`
}

/** Returns the message of anything thrown: PGlite throws values that are not an `Error`. */
const toReason = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "message" in cause ? String(cause.message) : String(cause)

/** The data directory can't hold a database: it is not a directory or not writable, or its content can't be opened. */
export class DataDirectoryUnusable extends Data.TaggedError("DataDirectoryUnusable")<{
  readonly path: string
  readonly cause: unknown
}> {
  override readonly message = `${this.path} cannot be used: ${toReason(this.cause)}`
}

/** SQLITE_BUSY, the low byte of the error code when another process has the lock. */
const sqliteBusy = 5

const isLockedError = (error: unknown): boolean =>
  error instanceof Error &&
  "errcode" in error &&
  typeof error.errcode === "number" &&
  (error.errcode & 0xff) === sqliteBusy

const makeDirectory = (path: string): void => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  if (!statSync(path).isDirectory()) throw new Error("it is not a directory")
}

/** Locks a file by an open SQLite transaction: the kernel releases the lock even if the process is killed. */
const lockFile = async (file: string): Promise<DatabaseSync> => {
  const sqlite = await import("node:sqlite")
  const database = new sqlite.DatabaseSync(file, { timeout: 0 })
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Makes this process the only owner of a data directory until the scope closes or the process ends, and returns the
 * directory's absolute path. Creates a missing directory, readable by its user only.
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
          return lockFile(join(path, "lock"))
        },
        catch: (cause) =>
          isLockedError(cause) ? new DataDirectoryBusy({ path }) : new DataDirectoryUnusable({ path, cause })
      }),
      (database) => Effect.sync(() => database.close())
    ),
    path
  )
}
