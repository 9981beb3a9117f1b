import { chmodSync } from "node:fs"
import { connect as connectSocket } from "node:net"
import { resolve } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { openPgliteSession } from "./PgliteSession.ts"
import { type DataDirectoryBusy, DataDirectoryUnusable, acquireDataDirectory } from "./DataDirectory.ts"
import type { NotificationListener } from "./NotificationListeners.ts"
import { SessionServer } from "./SessionServer.ts"
import { chooseSocketPath, findSocketPath, removeSocket } from "./SocketPath.ts"
import { noEncryptionReply, sslRequestPacket } from "./WireProtocol.ts"

/** A database in a data directory, reached like a PostgreSQL server through a Unix socket. */
export interface EmbeddedPostgres {
  /** The absolute path of the socket. Any name of a user and a database is accepted. */
  readonly socketPath: string
}

/** An embedded database that this process serves. */
export interface ServedPostgres extends EmbeddedPostgres {
  /**
   * Calls the listener for every `NOTIFY` on a channel, from any connection, until the scope closes. `LISTEN` over
   * the socket receives nothing.
   */
  readonly listen: (
    channel: string,
    listener: NotificationListener
  ) => Effect.Effect<void, never, Scope.Scope>
}

/**
 * Acquires a data directory for this process, opens its database (which takes 1 to 4 s) and serves it on a socket
 * until the scope closes. Fails with `DataDirectoryBusy` at once if another process owns the directory.
 */
export const open = Effect.fn("EmbeddedPostgres.open")(function* (options: { readonly dataDir: string }) {
  const dataDir = yield* acquireDataDirectory(options.dataDir)
  const context = yield* Effect.context<never>()
  const report = (message: string, cause: unknown): void => {
    Effect.runForkWith(context)(Effect.logError(message, cause))
  }
  const mapToUnusable = <A>(run: () => A | Promise<A>) =>
    Effect.tryPromise({
      try: async () => run(),
      catch: (cause) => new DataDirectoryUnusable({ path: dataDir, cause })
    })
  const socketPath = yield* Effect.acquireRelease(
    mapToUnusable(() => chooseSocketPath(dataDir)),
    () => Effect.sync(() => removeSocket(dataDir))
  )
  const server = yield* Effect.acquireRelease(
    mapToUnusable(() => SessionServer.listen(socketPath, () => openPgliteSession(dataDir), report)),
    (server) => Effect.promise(() => server.close())
  )
  yield* mapToUnusable(() => chmodSync(socketPath, 0o600))
  const served: ServedPostgres = {
    socketPath,
    listen: (channel, listener) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => server.listenTo(channel, listener)),
          (removeListener) => Effect.sync(removeListener)
        )
      )
  }
  return served
})

/** Tests whether a server responds on a socket, by asking it whether it supports TLS. */
const isServerListening = (socketPath: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connectSocket(socketPath)
    const finish = (isListening: boolean): void => {
      socket.destroy()
      resume(Effect.succeed(isListening))
    }
    socket.on("connect", () => socket.write(sslRequestPacket))
    socket.on("data", (bytes) => finish(bytes.equals(noEncryptionReply)))
    socket.on("error", () => finish(false))
    socket.on("end", () => finish(false))
    return Effect.sync(() => socket.destroy())
  })

/** How long the owner of a directory may take until its socket responds, in milliseconds: PGlite starts in 1 to 4 s. */
const startTimeoutMs = 15_000

/**
 * Connects to the database of a data directory until the scope closes: through the socket of the process that
 * serves it, or by opening it like `open` if no process does. Fails with `DataDirectoryBusy` if the process that
 * owns the directory does not respond within 15 s.
 */
export const connect = Effect.fn("EmbeddedPostgres.connect")(function* (options: {
  readonly dataDir: string
}): Effect.fn.Return<EmbeddedPostgres, DataDirectoryBusy | DataDirectoryUnusable, Scope.Scope> {
  const dataDir = resolve(options.dataDir)
  const deadline = (yield* Clock.currentTimeMillis) + startTimeoutMs
  for (;;) {
    const opened = yield* Effect.result(open(options))
    if (Result.isSuccess(opened)) return opened.success
    if (opened.failure._tag !== "DataDirectoryBusy") return yield* opened.failure
    const remaining = deadline - (yield* Clock.currentTimeMillis)
    if (remaining <= 0) return yield* opened.failure
    const socketPath = findSocketPath(dataDir)
    const isListening = yield* Effect.timeoutOption(isServerListening(socketPath), remaining)
    if (Option.getOrElse(isListening, () => false)) return { socketPath }
    yield* Effect.sleep("50 millis")
  }
})
