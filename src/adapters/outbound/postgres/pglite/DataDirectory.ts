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

/** What PGlite throws need not be an `Error`. */
const reasonOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "message" in cause ? String(cause.message) : String(cause)

/** The data directory can't hold a database: not a directory, not writable, or what is in it can't be opened. */
export class DataDirectoryUnusable extends Data.TaggedError("DataDirectoryUnusable")<{
  readonly path: string
  readonly cause: unknown
}> {
  override readonly message = `${this.path} can't be used: ${reasonOf(this.cause)}`
}

/** What an SQLite error says when somebody else has the lock, in the low byte of its code. */
const sqliteBusy = 5

const isBusy = (error: unknown): boolean =>
  error instanceof Error &&
  "errcode" in error &&
  typeof error.errcode === "number" &&
  (error.errcode & 0xff) === sqliteBusy

const makeDirectory = (path: string): void => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  if (!statSync(path).isDirectory()) throw new Error("it is not a directory")
}

/** An open transaction on a file is a lock that the kernel releases however its process ends. */
const lock = async (file: string): Promise<DatabaseSync> => {
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
 * Makes this process the only owner of a data directory until the scope closes, or the process ends in whatever way.
 * The directory is created where it is missing, for its user alone. Gives its absolute path.
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
          return lock(join(path, "lock"))
        },
        catch: (cause) =>
          isBusy(cause) ? new DataDirectoryBusy({ path }) : new DataDirectoryUnusable({ path, cause })
      }),
      (database) => Effect.sync(() => database.close())
    ),
    path
  )
}
