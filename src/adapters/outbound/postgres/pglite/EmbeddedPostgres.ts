import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect as connectSocket } from "node:net"
import { tmpdir } from "node:os"
import { basename, dirname, join, resolve } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { openPgliteSession } from "./PgliteSession.ts"
import { type DataDirectoryBusy, DataDirectoryUnusable, acquireDataDirectory } from "./DataDirectory.ts"
import { type NotificationListener, SessionServer } from "./SessionServer.ts"
import { noEncryption, sslRequestPacket } from "./WireProtocol.ts"

export { DataDirectoryBusy, DataDirectoryUnusable } from "./DataDirectory.ts"

/** A database that lives in a data directory and is reached like a PostgreSQL server, on a Unix socket. */
export interface EmbeddedPostgres {
  /** The absolute path of the socket. User and database are `postgres`, though any other name does. */
  readonly socketPath: string
}

/** An embedded database that this process serves. */
export interface ServedPostgres extends EmbeddedPostgres {
  /**
   * Hears of every `NOTIFY` on a channel, whoever sent it, until the scope closes. Over the socket `LISTEN` hears
   * nothing.
   */
  readonly listen: (
    channel: string,
    listener: NotificationListener
  ) => Effect.Effect<void, never, Scope.Scope>
}

const socketName = ".s.PGSQL.5432"
/** The longest path of a socket that Linux takes, in bytes. */
const maxPathBytes = 107

/** How the name of a private directory for a socket begins. */
const shortPrefix = "prompt-retrieval-socket-"

/** Where the socket is when its place in the data directory has too long a path. */
const socketPointerFile = (dataDir: string): string => join(dataDir, "socket")

const socketPathOf = (dataDir: string): string => {
  const path = join(dataDir, socketName)
  if (Buffer.byteLength(path) <= maxPathBytes) return path
  const record = socketPointerFile(dataDir)
  return existsSync(record) ? readFileSync(record, "utf8") : path
}

/** Removes the socket of a process that has ended. Only the owner of the directory may. */
const removeSocket = (dataDir: string): void => {
  const path = socketPathOf(dataDir)
  rmSync(path, { force: true })
  rmSync(socketPointerFile(dataDir), { force: true })
  if (basename(dirname(path)).startsWith(shortPrefix)) rmSync(dirname(path), { recursive: true, force: true })
}

/** A free path for the socket: in the data directory, or in a private one where that would be too long. */
const chooseSocketPath = (dataDir: string): string => {
  removeSocket(dataDir)
  const path = join(dataDir, socketName)
  if (Buffer.byteLength(path) <= maxPathBytes) return path
  const short = join(mkdtempSync(join(tmpdir(), shortPrefix)), socketName)
  writeFileSync(socketPointerFile(dataDir), short)
  return short
}

/**
 * Takes a data directory for this process, opens the database in it (in 1 to 4 s) and serves it on a socket until the
 * scope closes (DESIGN.md section 9). Fails with `DataDirectoryBusy` at once when another process has the directory.
 */
export const open = Effect.fn("EmbeddedPostgres.open")(function* (options: { readonly dataDir: string }) {
  const dataDir = yield* acquireDataDirectory(options.dataDir)
  const context = yield* Effect.context<never>()
  const report = (message: string, cause: unknown): void => {
    Effect.runForkWith(context)(Effect.logError(message, cause))
  }
  const usable = <A>(f: () => A | Promise<A>) =>
    Effect.tryPromise({
      try: async () => f(),
      catch: (cause) => new DataDirectoryUnusable({ path: dataDir, cause })
    })
  const socketPath = yield* Effect.acquireRelease(
    usable(() => chooseSocketPath(dataDir)),
    () => Effect.sync(() => removeSocket(dataDir))
  )
  const server = yield* Effect.acquireRelease(
    usable(() => SessionServer.listen(socketPath, () => openPgliteSession(dataDir), report)),
    (server) => Effect.promise(() => server.close())
  )
  yield* usable(() => chmodSync(socketPath, 0o600))
  const served: ServedPostgres = {
    socketPath,
    listen: (channel, listener) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => server.listenTo(channel, listener)),
          (end) => Effect.sync(end)
        )
      )
  }
  return served
})

/** Whether a server answers on a socket; one that doesn't listen, or not any more, doesn't. */
const isServerListening = (socketPath: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connectSocket(socketPath)
    const end = (answered: boolean): void => {
      socket.destroy()
      resume(Effect.succeed(answered))
    }
    socket.on("connect", () => socket.write(sslRequestPacket))
    socket.on("data", (bytes) => end(bytes.equals(noEncryption)))
    socket.on("error", () => end(false))
    socket.on("end", () => end(false))
    return Effect.sync(() => socket.destroy())
  })

/** How long the owner of a directory may take until its socket answers, in milliseconds: PGlite starts in 1 to 4 s. */
const startLimit = 15_000

/**
 * Reaches the database of a data directory until the scope closes: over the socket of the process that serves it, or,
 * when none does, by opening it as `open` does. Fails with `DataDirectoryBusy` when a process that has the directory
 * doesn't answer within 15 s.
 */
export const connect = Effect.fn("EmbeddedPostgres.connect")(function* (options: {
  readonly dataDir: string
}): Effect.fn.Return<EmbeddedPostgres, DataDirectoryBusy | DataDirectoryUnusable, Scope.Scope> {
  const dataDir = resolve(options.dataDir)
  const deadline = (yield* Clock.currentTimeMillis) + startLimit
  for (;;) {
    const opened = yield* Effect.result(open(options))
    if (Result.isSuccess(opened)) return opened.success
    if (opened.failure._tag !== "DataDirectoryBusy") return yield* opened.failure
    const left = deadline - (yield* Clock.currentTimeMillis)
    if (left <= 0) return yield* opened.failure
    const socketPath = socketPathOf(dataDir)
    const answered = yield* Effect.timeoutOption(isServerListening(socketPath), left)
    if (Option.isSome(answered) && answered.value) return { socketPath }
    yield* Effect.sleep("50 millis")
  }
})
