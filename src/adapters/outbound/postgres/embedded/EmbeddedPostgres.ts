import { mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { connect as connectSocket } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { acquireDataDirectory, type DataDirectoryBusy, DataDirectoryUnusable } from "./DataDirectory.ts"
import { prepareDatabase } from "./DatabaseFiles.ts"
import { EmbeddedUnavailable, findServerUser } from "./ServerUser.ts"
import { startPostgres } from "./PostgresProcess.ts"
import { findPrograms } from "./PostgresPrograms.ts"

export interface EmbeddedPostgres {
  /** The URL of the database, which leads to its Unix socket. */
  readonly url: Redacted.Redacted
}

const socketName = ".s.PGSQL.5432"
/** The longest path of a socket that all supported systems accept, in bytes. */
const maxPathBytes = 103

const toUrl = (directory: string): Redacted.Redacted =>
  Redacted.make(`postgres://postgres@localhost/postgres?host=${encodeURIComponent(directory)}`)

/**
 * Returns the URL of a data directory's socket. If the path of the socket is too long, makes a link to the socket in a
 * private temporary directory, which is removed when the scope closes.
 */
const findUrl = (dataDir: string) =>
  Buffer.byteLength(join(dataDir, socketName)) <= maxPathBytes
    ? Effect.succeed(toUrl(dataDir))
    : Effect.acquireRelease(
        Effect.sync(() => {
          const directory = mkdtempSync(join(tmpdir(), "prompt-retrieval-"))
          symlinkSync(join(dataDir, socketName), join(directory, socketName))
          return directory
        }),
        (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
      ).pipe(Effect.map(toUrl))

/**
 * Acquires a data directory for this process and runs PostgreSQL on it until the scope closes. Restarts PostgreSQL
 * whenever it ends. Creates a missing database. If another process owns the directory, immediately fails with
 * `DataDirectoryBusy`. If the directory cannot hold the database, fails with `DataDirectoryUnusable`. If PostgreSQL
 * cannot run on this machine, fails with `EmbeddedUnavailable`.
 */
export const open = Effect.fn("EmbeddedPostgres.open")(function* (options: { readonly dataDir: string }) {
  const dataDir = yield* acquireDataDirectory(options.dataDir)
  const attempt = <A>(run: () => A | Promise<A>) =>
    Effect.uninterruptible(
      Effect.tryPromise({
        try: async () => run(),
        catch: (cause) =>
          cause instanceof EmbeddedUnavailable ? cause : new DataDirectoryUnusable({ path: dataDir, cause })
      })
    )
  const user = yield* attempt(() => findServerUser(dataDir))
  const programs = yield* attempt(() => findPrograms(dataDir, user))
  const start = attempt(async () => {
    const directory = await prepareDatabase(dataDir, programs, user)
    return startPostgres(programs.postgres, directory, user)
  })
  let server = yield* start
  yield* Effect.addFinalizer(() => Effect.promise(() => server.stop()))
  const restart = Effect.gen(function* () {
    const reason = yield* Effect.promise(() => server.ended)
    yield* Effect.logError("PostgreSQL ended; starting it again", { reason })
    server = yield* Effect.retry(start, { schedule: Schedule.spaced("500 millis") })
  })
  yield* Effect.forkScoped(Effect.forever(restart))
  const socket = join(dataDir, socketName)
  yield* Effect.acquireRelease(
    attempt(() => {
      rmSync(socket, { force: true })
      symlinkSync(join("postgresql", socketName), socket)
    }),
    () => Effect.sync(() => rmSync(socket, { force: true }))
  )
  return { url: yield* findUrl(dataDir) }
})

/** The packet with which a client asks a PostgreSQL server whether it supports TLS. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

const isServerListening = (path: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connectSocket(path)
    const finish = (isListening: boolean): void => {
      socket.destroy()
      resume(Effect.succeed(isListening))
    }
    socket.on("connect", () => socket.write(sslRequest))
    socket.on("data", () => finish(true))
    socket.on("error", () => finish(false))
    socket.on("end", () => finish(false))
    return Effect.sync(() => socket.destroy())
  })

/** How long the process that owns a data directory may take to respond on its socket, in milliseconds. */
const startTimeoutMs = 15_000

/**
 * Connects to the database of a data directory until the scope closes. If another process runs the database, connects
 * to that process. Otherwise runs the database like `open`. Fails with `DataDirectoryBusy` if the process that owns the
 * directory does not respond within 15 s.
 */
export const connect = Effect.fn("EmbeddedPostgres.connect")(function* (options: {
  readonly dataDir: string
}): Effect.fn.Return<
  EmbeddedPostgres,
  DataDirectoryBusy | DataDirectoryUnusable | EmbeddedUnavailable,
  Scope.Scope
> {
  const deadline = (yield* Clock.currentTimeMillis) + startTimeoutMs
  for (;;) {
    const opened = yield* Effect.result(open(options))
    if (Result.isSuccess(opened)) return opened.success
    if (opened.failure._tag !== "DataDirectoryBusy") return yield* opened.failure
    const remaining = deadline - (yield* Clock.currentTimeMillis)
    if (remaining <= 0) return yield* opened.failure
    const url = yield* findUrl(resolve(options.dataDir))
    const directory = new URL(Redacted.value(url)).searchParams.get("host") as string
    const isListening = yield* Effect.timeoutOption(isServerListening(join(directory, socketName)), remaining)
    if (Option.getOrElse(isListening, () => false)) return { url }
    yield* Effect.sleep("50 millis")
  }
})
