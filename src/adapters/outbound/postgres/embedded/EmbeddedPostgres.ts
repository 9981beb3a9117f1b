import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { makeRepeatingLog } from "../../../../application/observability/RepeatingLog.ts"
import { prepareDatabase } from "./DatabaseFiles.ts"
import { acquireDataDirectory, DataDirectoryUnusable } from "./DataDirectory.ts"
import { startPostgres } from "./PostgresProcess.ts"
import { findPrograms } from "./PostgresPrograms.ts"
import { EmbeddedUnavailable, findServerUser } from "./ServerUser.ts"

const socketName = ".s.PGSQL.5432"
/** The longest path of a socket that all supported systems accept, in bytes. */
const maxPathBytes = 103

/**
 * Returns the URL of a data directory's socket. If the path of the socket is too long, makes a link to the socket in a
 * private temporary directory. The scope removes this directory.
 */
const findSocket = Effect.fnUntraced(function* (dataDir: string) {
  let directory = dataDir
  if (Buffer.byteLength(join(dataDir, socketName)) > maxPathBytes) {
    directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "prompt-retrieval-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    )
    symlinkSync(join(dataDir, socketName), join(directory, socketName))
  }
  const url = `postgres://postgres@localhost/postgres?host=${encodeURIComponent(directory)}`
  return { url: Redacted.make(url) }
})

/**
 * Acquires a data directory for this process and runs PostgreSQL on it until the scope closes. Restarts PostgreSQL
 * whenever the server ends. Creates a missing database. Fails immediately if another process owns the directory, if the
 * directory cannot hold the database, or if PostgreSQL cannot run on this machine.
 */
export const open = Effect.fnUntraced(function* (options: { readonly dataDir: string }) {
  const dataDir = yield* acquireDataDirectory(options.dataDir)
  // The socket exists only while the server accepts connections.
  const socket = join(dataDir, socketName)
  const removeSocket = () => rmSync(socket, { force: true })
  const start = Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        removeSocket()
        const user = findServerUser(dataDir)
        const programs = findPrograms(dataDir, user)
        const directory = await prepareDatabase(dataDir, programs, user)
        const server = await startPostgres(programs, directory, user)
        try {
          symlinkSync(join(basename(directory), socketName), socket)
        } catch (error) {
          await server.stop()
          throw error
        }
        return server
      },
      catch: (cause) =>
        cause instanceof EmbeddedUnavailable ? cause : new DataDirectoryUnusable({ path: dataDir, cause })
    }),
    ({ stop }) => Effect.ensuring(Effect.sync(removeSocket), Effect.promise(stop))
  )
  const waitForEnd = ({ ended }: Effect.Success<typeof start>) =>
    Effect.flatMap(
      Effect.promise(() => ended),
      ({ reason }) => Effect.logError("PostgreSQL ended; starting it again", { reason })
    )
  const logFailure = makeRepeatingLog((reason) =>
    Effect.logError("PostgreSQL did not start; trying again", { reason })
  )
  const restart = start.pipe(
    Effect.tapError(({ message }) => logFailure(message)),
    Effect.retry({ schedule: Schedule.spaced("500 millis") })
  )
  const server = yield* start
  yield* Effect.forkScoped(
    Effect.andThen(waitForEnd(server), Effect.forever(Effect.scoped(Effect.flatMap(restart, waitForEnd))))
  )
  return yield* findSocket(dataDir)
})

/**
 * Connects to the database of a data directory. If no other process runs the database, runs the database as `open`
 * does. Fails with `DataDirectoryBusy` if the process that owns the directory has not started the database after 15 s.
 */
export const connect = (options: { readonly dataDir: string }) => {
  const dataDir = resolve(options.dataDir)
  return open({ dataDir }).pipe(
    Effect.catchTag("DataDirectoryBusy", (busy) =>
      existsSync(join(dataDir, socketName)) ? findSocket(dataDir) : busy
    ),
    Effect.retry({
      while: ({ _tag }) => _tag === "DataDirectoryBusy",
      schedule: Schedule.spaced("50 millis"),
      times: 300
    })
  )
}
