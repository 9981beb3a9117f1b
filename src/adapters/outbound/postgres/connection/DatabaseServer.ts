import { connect, isIP, type Socket } from "node:net"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Redacted from "effect/Redacted"
import { type ConnectionUrl, parseConnectionUrl, type ServerAddress } from "./ConnectionUrl.ts"
import { makeServerSelection } from "./ServerSelection.ts"

/** The options with which the driver connects to a server. */
export type ConnectionConfig = Pick<PgClient.PgClientConfig, "url" | "password" | "ssl" | "stream">

/**
 * The size of the buffer that receives the bytes of a connection. One read of a socket returns at most this many bytes.
 */
const receiveBytes = 64 * 1024

/**
 * Opens a socket that receives all bytes into the same buffer. The driver copies the bytes before the next read.
 * Without this buffer, each chunk of a large row would be a separate buffer.
 */
const openSocket = ({ host, port }: ServerAddress): Socket => {
  const socket: Socket = connect({
    ...(host.startsWith("/")
      ? { path: `${host}/.s.PGSQL.${port}` }
      : // Nagle's algorithm would only delay a statement, because the driver writes each statement with one call.
        { host, port, noDelay: true }),
    onread: {
      buffer: Buffer.allocUnsafeSlow(receiveBytes),
      callback: (length, buffer) => {
        socket.emit("data", buffer.subarray(0, length))
        return true
      }
    }
  })
  return socket
}

const parseUrl = (url: Redacted.Redacted): ConnectionUrl => {
  const parsed = parseConnectionUrl(Redacted.value(url))
  // The configuration has already validated its URLs. This error is for other callers.
  if (typeof parsed === "string") throw new TypeError(`The URL of the database ${parsed}`)
  return parsed
}

/**
 * The server to which the connections of one URL lead. While the change feed is up, connections lead only to the server
 * of the feed, because another server may have changes that the feed does not report. If the URL has several hosts or
 * `target_session_attrs`, each new connection selects a server while the feed is down.
 */
export class DatabaseServer extends Context.Service<
  DatabaseServer,
  {
    /** The options for the connections of pools. */
    readonly config: ConnectionConfig
    /** The options for the connections of the change feed. */
    readonly feedConfig: ConnectionConfig
    /**
     * Reports that the change feed is up on `server`. From now on, connections may lead only to this server. If an
     * earlier connection led to another server, all connections of pools are closed.
     */
    readonly follow: (server: string) => Effect.Effect<void>
    /** Reports that the change feed is down: connections may lead to any server. */
    readonly unfollow: Effect.Effect<void>
    /**
     * Records that a connection leads to `server`. Returns false if the change feed is up on another server, because
     * one of the two servers has replaced the other. In this case, all connections of pools are closed, and the change
     * feed must reconnect.
     */
    readonly confirm: (server: string) => boolean
    /** Succeeds after `confirm` has returned false. `unfollow` resets this state. */
    readonly serverMismatch: Effect.Effect<void>
  }
>()("prompt-retrieval/DatabaseServer") {}

const logReplacement = Effect.logInfo(
  "PostgreSQL was restarted or replaced; its earlier connections are closed"
)

/** Makes the `DatabaseServer` of a URL. Throws if the URL is invalid. */
export const makeDatabaseServer = (url: Redacted.Redacted): DatabaseServer["Service"] => {
  const parsed = parseUrl(url)
  const [first] = parsed.servers as readonly [ServerAddress]
  const hasSeveralHosts = parsed.servers.length > 1
  const isSelected = hasSeveralHosts || parsed.targetSessionAttrs !== "any"
  const select = makeServerSelection(parsed)
  /** The open sockets of pools. */
  const sockets = new Set<Socket>()
  /** The servers to which connections have led since the change feed came up. */
  const servers = new Set<string>()
  const mismatchLatch = Latch.makeUnsafe(false)
  let selected: ServerAddress | Error = isSelected ? new Error("no server is selected") : first
  /** The server of the change feed; `undefined` while the feed is down. */
  let feedServer: string | undefined

  const getSelected = (): ServerAddress => {
    if (selected instanceof Error) throw selected
    return selected
  }

  /**
   * Selects a server for a new connection. Never fails: if no server can be selected, opening the connection fails with
   * the reason.
   */
  const selectServer = Effect.suspend(() =>
    feedServer !== undefined
      ? Effect.void
      : Effect.match(select, {
          onSuccess: (address) => {
            selected = address
          },
          onFailure: (error) => {
            selected = error
          }
        })
  )

  const closeSockets = (): void => {
    for (const socket of sockets) socket.destroy(new Error("another server took over"))
  }

  const makeConfig = (openStream: () => Socket): ConnectionConfig => ({
    url: hasSeveralHosts ? Redacted.make(parsed.formatServerUrl(first)) : url,
    ...(isSelected && {
      // The driver evaluates this effect before it opens the socket of a connection. If the URL has no password, the
      // driver must get none, as with the URL of a single server.
      password: Effect.as(selectServer, Redacted.make(parsed.password as string))
    }),
    ...(hasSeveralHosts &&
      parsed.sslMode !== "disable" && {
        // The driver reads these properties at each TLS handshake. The certificate must belong to the selected host.
        ssl: {
          get host() {
            return getSelected().host
          },
          get servername() {
            const { host } = getSelected()
            return isIP(host) === 0 ? host : undefined
          }
        }
      }),
    stream: openStream
  })

  return {
    config: makeConfig(() => {
      const socket = openSocket(getSelected())
      sockets.add(socket)
      return socket.on("close", () => sockets.delete(socket))
    }),
    feedConfig: makeConfig(() => openSocket(getSelected())),
    follow: (server) =>
      Effect.suspend(() => {
        const isReplacement = [...servers].some((earlier) => earlier !== server)
        if (isReplacement) closeSockets()
        feedServer = server
        servers.clear()
        servers.add(server)
        return isReplacement ? logReplacement : Effect.void
      }),
    unfollow: Effect.sync(() => {
      feedServer = undefined
      mismatchLatch.closeUnsafe()
    }),
    confirm: (server) => {
      servers.add(server)
      if (feedServer === undefined || feedServer === server) return true
      feedServer = undefined
      closeSockets()
      mismatchLatch.openUnsafe()
      return false
    },
    serverMismatch: mismatchLatch.await
  }
}
