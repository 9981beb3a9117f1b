import { connect, isIP, type Socket } from "node:net"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type ConnectionUrl, parseConnectionUrl, type ServerAddress } from "./ConnectionUrl.ts"
import { ServerSelection } from "./ServerSelection.ts"

/** How the driver reaches a server. */
export type ConnectionConfig = Pick<PgClient.PgClientConfig, "url" | "password" | "ssl" | "stream">

const openSocket = ({ host, port }: ServerAddress): Socket =>
  host.startsWith("/")
    ? connect({ path: `${host}/.s.PGSQL.${port}` })
    : // A statement is one write that awaits its response.
      connect({ host, port, noDelay: true })

const parseUrl = (url: Redacted.Redacted): ConnectionUrl => {
  const parsed = parseConnectionUrl(Redacted.value(url))
  // The drivers' own words for a URL that no rule has checked.
  if (typeof parsed === "string") throw new TypeError(`The URL of the database ${parsed}`)
  return parsed
}

/**
 * The server that the connections of one URL lead to. A URL with several hosts, or with a target, is resolved for each
 * connection: a connection to another server would read what the change feed does not report.
 */
export class DatabaseServer extends Context.Service<
  DatabaseServer,
  {
    /** How connections are made. Every connection of the URL uses it. */
    readonly config: ConnectionConfig
    /** Makes sure that the connections lead to the server that the URL asks for; closes the others. */
    readonly check: Effect.Effect<void>
    /**
     * Records which server responded on a new connection, or on one that is known to lead to it. If that is another
     * server than before, closes the connections that were opened before the latest confirmation.
     */
    readonly confirm: (server: string) => Effect.Effect<void>
    /** Calls a function whenever another server is confirmed. */
    readonly onChange: (listener: () => void) => void
    /** Returns the URL of the selected server alone; `undefined` for the embedded database. Throws if there is none. */
    readonly findSelectedUrl: () => string | undefined
  }
>()("prompt-retrieval/DatabaseServer") {}

const log = Effect.logInfo("PostgreSQL was restarted or replaced; its earlier connections are closed")

/** Makes the server of a URL. Throws if the URL is invalid. */
export const makeDatabaseServer = (url: Redacted.Redacted): DatabaseServer["Service"] => {
  const parsed = parseUrl(url)
  const [first] = parsed.servers as readonly [ServerAddress]
  const selection =
    parsed.servers.length > 1 || parsed.targetSessionAttrs !== "any" ? new ServerSelection(parsed) : undefined
  /** The open sockets, with the moment at which each was opened. */
  const sockets = new Map<Socket, number>()
  const listeners: Array<() => void> = []
  /** The address that the last connection was opened to. */
  let lastAddress = first
  let now = 0
  let confirmed: { readonly server: string; readonly at: number } | undefined

  const confirm = (server: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const previous = confirmed
      confirmed = { server, at: ++now }
      if (previous === undefined || previous.server === server) return Effect.void
      for (const [socket, openedAt] of sockets)
        if (openedAt < previous.at) socket.destroy(new Error("another server took over"))
      for (const listener of listeners) listener()
      return log
    })

  const check =
    selection === undefined
      ? Effect.void
      : Effect.andThen(
          selection.select,
          Effect.suspend(() => {
            try {
              return confirm(selection.get().server)
            } catch {
              // Connections fail with the reason.
              return Effect.void
            }
          })
        )

  const currentAddress = (): ServerAddress => selection?.get().address ?? first

  return {
    config: {
      url: parsed.servers.length > 1 ? Redacted.make(parsed.urlOf(first)) : url,
      ...(selection !== undefined && {
        // The driver evaluates this before each connection, and opens the socket afterwards. Without a password in the
        // URL, the driver must find none, as in the URL of a single server.
        password: Effect.as(check, Redacted.make(parsed.password as string))
      }),
      ...(parsed.servers.length > 1 &&
        parsed.sslMode !== "disable" && {
          // Read at each handshake: the certificate must be that of the chosen host.
          ssl: {
            get host() {
              return lastAddress.host
            },
            get servername() {
              return isIP(lastAddress.host) === 0 ? lastAddress.host : undefined
            }
          }
        }),
      stream: () => {
        lastAddress = currentAddress()
        const socket = openSocket(lastAddress)
        sockets.set(socket, ++now)
        return socket.on("close", () => sockets.delete(socket))
      }
    },
    check,
    confirm,
    onChange: (listener) => {
      listeners.push(listener)
    },
    findSelectedUrl: () =>
      selection === undefined ? Redacted.value(url) : parsed.urlOf(selection.get().address)
  }
}

/** The embedded database, which has no other server. */
export const embeddedServer: DatabaseServer["Service"] = {
  config: {},
  check: Effect.void,
  confirm: () => Effect.void,
  onChange: () => {},
  findSelectedUrl: () => undefined
}
