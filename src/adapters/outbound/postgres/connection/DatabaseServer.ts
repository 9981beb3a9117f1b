import { connect, isIP, type Socket } from "node:net"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { makeStateLog } from "../../../../application/StateLog.ts"
import { type ConnectionUrl, parseConnectionUrl, type ServerAddress } from "./ConnectionUrl.ts"
import { ServerSelection } from "./ServerSelection.ts"
import { ServerSightings } from "./ServerSightings.ts"

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
 * connection. A connection that leads to another server than the others would read what the change feed does not report,
 * so it is not used. A new connection decides which server is the current one.
 */
export class DatabaseServer extends Context.Service<
  DatabaseServer,
  {
    /** How connections are made whose server is confirmed before their results count. */
    readonly config: ConnectionConfig
    /** How all other connections are made. They are closed whenever another server becomes the current one. */
    readonly unconfirmedConfig: ConnectionConfig
    /** Makes sure that the connections lead to the server that the URL asks for; closes the others. */
    readonly check: Effect.Effect<void>
    /**
     * Records which server a connection leads to, and returns false if that is not the current server: the connection
     * must then be closed. If the server is not known, a new connection decides; the connections to the earlier server
     * are closed.
     */
    readonly confirm: (server: string) => Effect.Effect<boolean>
    /**
     * Returns true while connections lead to several servers in turn. All connections are then used, because no server
     * is the right one.
     */
    readonly isAlternating: () => boolean
    /** Calls a function whenever another server becomes the current one. */
    readonly onChange: (listener: () => void) => void
    /** Returns the URL of the selected server alone. Throws if there is none. */
    readonly findSelectedUrl: () => string
  }
>()("prompt-retrieval/DatabaseServer") {}

const log = Effect.logInfo("PostgreSQL was restarted or replaced; its earlier connections are closed")

const alternationMessages = {
  failed:
    "The database URL leads to several PostgreSQL servers in turn; caching disabled, and reads may return the state of " +
    "any of them; list the servers with target_session_attrs=read-write, or let the balancer route to the primary only",
  restored: "The database URL leads to one PostgreSQL server again"
}

/** An open socket. */
interface OpenSocket {
  readonly openedAt: number
  /** The server that was selected for it; undefined if the URL leads to it directly. */
  readonly selected: string | undefined
  /** True if the connection is used only once its server is confirmed. */
  readonly isConfirmed: boolean
}

/** Makes the server of a URL. Throws if the URL is invalid. */
export const makeDatabaseServer = (url: Redacted.Redacted): DatabaseServer["Service"] => {
  const parsed = parseUrl(url)
  const [first] = parsed.servers as readonly [ServerAddress]
  const hasSeveralHosts = parsed.servers.length > 1
  /** True if the server is selected for each connection. Otherwise the selection only decides about contradictions. */
  const isSelected = hasSeveralHosts || parsed.targetSessionAttrs !== "any"
  const selection = new ServerSelection(parsed)
  const sightings = new ServerSightings()
  const alternationLog = makeStateLog(alternationMessages)
  const sockets = new Map<Socket, OpenSocket>()
  const listeners: Array<() => void> = []
  /** The address that the last connection was opened to. */
  let lastAddress = first
  let now = 0
  /** The current server, and when it was last confirmed. */
  let current: { readonly server: string; readonly at: number } | undefined
  let isAlternating = false

  const replace = (isOutdated: (socket: OpenSocket) => boolean): void => {
    for (const [socket, state] of sockets)
      if (isOutdated(state)) socket.destroy(new Error("another server took over"))
    for (const listener of listeners) listener()
  }

  /**
   * Makes a server the current one. Connections that have confirmed the previous server were opened before its last
   * confirmation. Later ones that were not opened for the previous server have yet to confirm theirs.
   */
  const moveTo = (server: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const previous = current
      current = { server, at: ++now }
      if (previous === undefined || previous.server === server) return Effect.void
      replace(
        ({ openedAt, selected, isConfirmed }) =>
          !isConfirmed || openedAt < previous.at || (selected ?? server) !== server
      )
      return log
    })

  const updateAlternation: Effect.Effect<void> = Effect.suspend(() => {
    const wasAlternating = isAlternating
    isAlternating = sightings.isAlternating(performance.now())
    if (isAlternating) return alternationLog.down()
    if (wasAlternating) {
      current = undefined
      replace(() => true)
    }
    return alternationLog.up
  })

  const findSelected = (): string | undefined => {
    try {
      return selection.get().server
    } catch {
      // Connections fail with the reason.
      return undefined
    }
  }

  /** Selects the server on new connections. Succeeds with true if one was found. */
  const select: Effect.Effect<boolean> = Effect.gen(function* () {
    yield* selection.select
    const server = findSelected()
    if (server === undefined) return false
    sightings.record(server, performance.now())
    yield* updateAlternation
    if (!isAlternating) yield* moveTo(server)
    return true
  })

  const confirm = (server: string): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      const hasReturned = sightings.record(server, performance.now())
      yield* updateAlternation
      if (isAlternating) return true
      if (current === undefined || current.server === server) yield* moveTo(server)
      else {
        const isFound = yield* select
        // A server that has no free connection for the selection.
        if (!isFound && !isSelected && !hasReturned) yield* moveTo(server)
      }
      return isAlternating || current?.server === server
    })

  const check: Effect.Effect<void> = Effect.suspend(() => {
    if (!isAlternating) return isSelected ? Effect.asVoid(select) : Effect.void
    return Effect.flatMap(selection.sample, (servers) => {
      for (const server of servers) sightings.record(server, performance.now())
      return updateAlternation
    })
  })

  const makeConfig = (isConfirmed: boolean): ConnectionConfig => ({
    url: hasSeveralHosts ? Redacted.make(parsed.urlOf(first)) : url,
    ...(isSelected && {
      // The driver evaluates this before each connection, and opens the socket afterwards. Without a password in the
      // URL, the driver must find none, as in the URL of a single server.
      password: Effect.as(select, Redacted.make(parsed.password as string))
    }),
    ...(hasSeveralHosts &&
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
      const selected = isSelected ? selection.get() : undefined
      lastAddress = selected?.address ?? first
      const socket = openSocket(lastAddress)
      sockets.set(socket, { openedAt: ++now, selected: selected?.server, isConfirmed })
      return socket.on("close", () => sockets.delete(socket))
    }
  })

  return {
    config: makeConfig(true),
    unconfirmedConfig: makeConfig(false),
    check,
    confirm,
    isAlternating: () => isAlternating,
    onChange: (listener) => {
      listeners.push(listener)
    },
    findSelectedUrl: () => (isSelected ? parsed.urlOf(selection.get().address) : Redacted.value(url))
  }
}
