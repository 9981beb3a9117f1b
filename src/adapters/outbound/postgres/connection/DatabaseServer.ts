import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { connect, type Socket } from "node:net"
import type { SqlError } from "effect/sql/SqlError"
import { type ConnectionUrl, parseConnectionUrl } from "./ConnectionUrl.ts"
import { makeConnectionError } from "../driver/SqlErrors.ts"

/** The size of the receive buffer of a connection, and so the maximum size of one read of its socket. */
const receiveBytes = 64 * 1024

/**
 * Opens a socket that receives all bytes in one buffer, which the driver copies before the next read. Otherwise, Node
 * would allocate a buffer for each chunk of a large row.
 */
const openSocket = ({ host, port }: Pick<ConnectionUrl, "host" | "port">): Socket => {
  const socket: Socket = connect({
    ...(host.startsWith("/")
      ? { path: `${host}/.s.PGSQL.${port}` }
      : // The driver writes each statement with one call, so Nagle's algorithm would only add a delay.
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

/** The options with which the driver connects to a server. */
export type ConnectionConfig = Pick<PgClient.PgClientConfig, "url" | "stream">

/**
 * The server to which the connections of one URL lead. In a failover, another server takes over the URL. All connections
 * must then lead to this server, because the change feed reports the changes of only one server.
 */
export class DatabaseServer extends Context.Service<
  DatabaseServer,
  {
    /** The options for all connections of the URL. */
    readonly config: ConnectionConfig
    /**
     * Reports that a connection leads to `server` (see `serverIdentity`). If the previous connection led to another
     * server, closes all connections, including this one, and fails. New connections must then lead to `server`.
     */
    readonly confirm: (server: string) => Effect.Effect<void, SqlError>
  }
>()("prompt-retrieval/DatabaseServer") {}

const replacedServerError = makeConnectionError("another server has taken over")

const logReplacement = Effect.logInfo(
  "PostgreSQL was restarted or replaced; its earlier connections are closed"
)

/** Makes the `DatabaseServer` of a URL. Throws if the URL is invalid. */
export const makeDatabaseServer = (url: Redacted.Redacted): DatabaseServer["Service"] => {
  const address = parseConnectionUrl(Redacted.value(url))
  if (typeof address === "string") throw new TypeError(`The URL of the database ${address}`)
  const sockets = new Set<Socket>()
  let current: string | undefined
  return {
    config: {
      url,
      stream: () => {
        const socket = openSocket(address)
        sockets.add(socket)
        return socket.on("close", () => sockets.delete(socket))
      }
    },
    confirm: (server) =>
      Effect.suspend(() => {
        const earlier = current
        current = server
        if (earlier === undefined || earlier === server) return Effect.void
        for (const socket of sockets) socket.destroy(replacedServerError)
        return Effect.andThen(logReplacement, Effect.fail(replacedServerError))
      })
  }
}
