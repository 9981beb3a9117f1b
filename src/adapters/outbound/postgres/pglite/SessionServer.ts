import { createServer, type Server } from "node:net"
import type { NotificationListener } from "./NotificationListeners.ts"
import { SessionConnection } from "./SessionConnection.ts"
import { type OpenDatabase, type ReportFailure, SharedSession } from "./SharedSession.ts"

/** How long closing waits for running statements, in milliseconds. */
const closeTimeoutMs = 5_000

/**
 * Serves the one session of a PGlite to many connections on a Unix socket, in the PostgreSQL wire protocol. One
 * connection at a time holds the session, from its first message until the session is idle outside a transaction;
 * the others wait in the order of their messages.
 */
export class SessionServer {
  readonly #session: SharedSession
  readonly #server: Server
  readonly #connections = new Set<SessionConnection>()
  #nextId = 1

  private constructor(session: SharedSession) {
    this.#session = session
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      const connection = new SessionConnection(session, socket, this.#nextId++)
      this.#connections.add(connection)
      socket.once("close", () => this.#connections.delete(connection))
    })
  }

  /**
   * Opens the database and listens on `path`, where no file may exist. Calls `open` again whenever the database has
   * failed, after passing the reason to `report`.
   */
  static async listen(path: string, open: OpenDatabase, report: ReportFailure): Promise<SessionServer> {
    const database = await open()
    const server = new SessionServer(new SharedSession(database, open, report))
    try {
      await new Promise<void>((resolve, reject) => {
        // Later errors concern single connections that could not be accepted.
        server.#server.on("error", reject)
        server.#server.listen(path, resolve)
      })
    } catch (error) {
      await database.close()
      throw error
    }
    return server
  }

  /** Calls the listener for every `NOTIFY` on a channel from now on; returns the function that removes it. */
  listenTo(channel: string, listener: NotificationListener): () => void {
    return this.#session.listenTo(channel, listener)
  }

  /** Stops accepting connections, lets running transactions finish, and closes the database. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
    for (const connection of this.#connections) connection.shutDown()
    const timer = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy()
    }, closeTimeoutMs)
    await closed
    clearTimeout(timer)
    // A connection that was closed in a transaction may still be rolling back.
    await this.#session.close(closeTimeoutMs)
  }
}
