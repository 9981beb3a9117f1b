import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { HttpResponse } from "../HttpMessage.ts"
import { Connection, type TrackedResponse } from "./Connection.ts"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import { stopParsing } from "./NodeInternals.ts"
import { UnsentMemory } from "./UnsentMemory.ts"

const ignoreError = (): void => {}

/** Handles the `close` event of a response: the response is sent, or its connection is closed. */
function onResponseClose(this: ServerResponse): void {
  const response = this as TrackedResponse
  response.connectionState?.release(response)
}

/** Runs a request, and calls `ConnectionTracker.recordResponse`, immediately or later, with the response. */
export type StartRequest = (response: TrackedResponse) => void

/**
 * Owns every connection until the connection closes: its error listener, its in-flight responses and their memory, and
 * the time limits of its client. One periodic sweep checks the time limits, which docs/limits.md describes.
 */
export class ConnectionTracker {
  readonly #limits: ConnectionLimits
  readonly #start: StartRequest
  readonly #connections = new Map<Duplex, Connection>()
  readonly #sweeper: NodeJS.Timeout
  /**
   * The time of the last sweep. This time is precise enough for the idle time of a connection, and cheaper than reading
   * the clock.
   */
  #now = performance.now()
  /** The number of in-flight requests. Requests of a destroyed connection are included until its socket has closed. */
  #requests = 0
  readonly #unsent: UnsentMemory
  #isDraining = false

  constructor(limits: ConnectionLimits, start: StartRequest) {
    this.#limits = limits
    this.#start = start
    this.#unsent = new UnsentMemory(limits.maxUnsentBytes)
    this.#sweeper = setInterval(() => this.#sweep(), limits.sweepIntervalMs).unref()
  }

  /**
   * Takes ownership of a connection. If the number of connections is at its maximum, first destroys some of the
   * connections that have been idle longest. If no connection is idle, destroys the new connection.
   */
  trackConnection(socket: Socket): void {
    // Node removes its own error listener before it emits `connect`. An error without a listener would end the process.
    socket.on("error", ignoreError)
    if (this.#connections.size >= this.#limits.maxConnections) this.#destroyLongestIdle()
    if (this.#connections.size >= this.#limits.maxConnections) {
      socket.destroy()
      return
    }
    const connection = new Connection(socket, this.#release, this.#now)
    this.#connections.set(socket, connection)
    // Node creates two errors for each pipelined request of a closing connection. Capturing their stack traces would
    // take seconds.
    let { stackTraceLimit } = Error
    socket.prependOnceListener("close", () => {
      stackTraceLimit = Error.stackTraceLimit
      Error.stackTraceLimit = 0
    })
    socket.once("close", () => {
      Error.stackTraceLimit = stackTraceLimit
      this.#forget(connection)
    })
    // Node resumes a socket whenever a request ends. A paused connection must stay paused.
    socket.on("resume", () => {
      if (connection.isPaused) socket.pause()
    })
  }

  /** Tracks a request, and starts it once the earlier responses of its connection are sent. */
  trackRequest(request: IncomingMessage, response: TrackedResponse): void {
    const connection = this.#connections.get(request.socket)
    if (connection === undefined || connection.isRejected) return
    const { responses } = connection
    if (this.#destroyIfStreaming(connection)) return
    const last = responses[responses.length - 1]
    if (this.#isDraining && last !== undefined) {
      if (last.headersSent) return
      last.shouldKeepAlive = last.shouldKeepAliveBeforeDrain
    }
    connection.latestRequest = request
    // Upgrades are not supported, and Node stops parsing after an Upgrade header: close the connection after the
    // response.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    responses.push(response)
    response.connectionState = connection
    response.on("close", onResponseClose)
    if (this.#isDraining) this.#closeAfterLastResponse(connection)
    const { maxRequests, maxWaitingPerConnection, maxParsedPerConnection } = this.#limits
    const isOverShare =
      ++this.#requests > maxRequests && responses.length * this.#connections.size > maxRequests
    if (isOverShare || responses.length > maxParsedPerConnection) {
      this.#destroy(connection)
      stopParsing(connection.socket)
      return
    }
    if (responses.length === 1) this.#startFirst(connection)
    if (responses.length > maxWaitingPerConnection && !connection.isPaused) {
      connection.isPaused = true
      connection.socket.pause()
    }
  }

  hasRoom(bytes: number, workspace: WorkspaceId | undefined): boolean {
    return this.#unsent.hasRoom(bytes, workspace)
  }

  /** Returns true if the connection of a response is open and has no other in-flight response. */
  canStream({ connectionState }: TrackedResponse): boolean {
    return (
      connectionState !== undefined && !connectionState.isClosed && connectionState.responses.length === 1
    )
  }

  /**
   * Destroys the connection if a response is being streamed on it, because a further request would have to wait for the
   * end of the stream. Returns true if the connection was destroyed.
   */
  #destroyIfStreaming(connection: Connection): boolean {
    const isStreaming = connection.responses[0]?.isStreamed === true
    if (isStreaming) this.#destroy(connection)
    return isStreaming
  }

  /**
   * Counts the memory of the content that is about to be written. `content` is `undefined` if the request ended without
   * a response.
   */
  recordResponse(response: TrackedResponse, content: HttpResponse | undefined): void {
    const connection = response.connectionState
    if (connection === undefined || connection.isClosed) return
    connection.isRunning = false
    if (content === undefined || content.isPermanent === true || response.req.method === "HEAD") return
    response.ownedBytes = content.body.length
    response.workspace = content.workspace
    this.#unsent.add(response.ownedBytes, response.workspace)
  }

  /**
   * Runs `writeRejection` once no response is in flight on the connection. `writeRejection` calls its argument when the
   * rejection is sent, and returns false if the rejection cannot be written. Destroys the connection if a response is
   * being streamed on it. Does nothing if the connection is already rejected, because the rest of its bytes is
   * discarded.
   */
  rejectWhenIdle(socket: Socket, writeRejection: (onSent: () => void) => boolean): void {
    const connection = this.#connections.get(socket)
    if (connection === undefined) {
      socket.destroy()
      return
    }
    if (connection.isRejected || this.#destroyIfStreaming(connection)) return
    const reject = () => {
      connection.isRejected = true
      connection.isPaused = false
      const isWritten = writeRejection(() => {
        connection.rejectedAt = performance.now()
      })
      // Read the remaining bytes. Closing a socket with unread bytes would reset the connection, and the client might
      // not receive the rejection.
      if (isWritten) socket.resume()
      else this.#destroy(connection)
    }
    if (connection.responses.length === 0) reject()
    else {
      connection.onIdle = reject
      connection.isPaused = true
      socket.pause()
    }
  }

  /** Returns true while the body of the latest request is arriving. A parse error in this body gets no response. */
  hasUnreadBody(socket: Socket): boolean {
    return this.#connections.get(socket)?.latestRequest?.complete === false
  }

  hasRunningRequests(): boolean {
    return Array.from(this.#connections.values()).some(({ isRunning }) => isRunning)
  }

  /**
   * From now on, each connection closes after its last in-flight response, and stalled clients are disconnected sooner.
   */
  startDraining(): void {
    this.#isDraining = true
    this.#sweep()
    for (const connection of this.#connections.values()) this.#closeAfterLastResponse(connection)
  }

  destroyIdle(): void {
    for (const connection of this.#connections.values())
      if (connection.responses.length === 0) this.#destroy(connection)
  }

  destroyAll(): void {
    clearInterval(this.#sweeper)
    for (const connection of this.#connections.values()) this.#destroy(connection)
  }

  /** Releases the memory of a response that is sent, and starts the next request of its connection. */
  readonly #release = (response: TrackedResponse): void => {
    const connection = response.connectionState
    if (connection === undefined || connection.isClosed) return
    const { responses } = connection
    responses.splice(responses.indexOf(response), 1)
    this.#requests--
    this.#unsent.add(-response.ownedBytes, response.workspace)
    connection.idleSince = this.#now
    if (connection.latestRequest === response.req && response.req.complete)
      connection.latestRequest = undefined
    if (responses.length === 0) connection.onIdle?.()
    else this.#startFirst(connection)
    if (connection.isPaused && responses.length <= 1 && !connection.isRejected) {
      connection.isPaused = false
      connection.socket.resume()
    }
  }

  #closeAfterLastResponse({ responses }: Connection): void {
    const last = responses[responses.length - 1]
    if (last === undefined) return
    last.shouldKeepAliveBeforeDrain = last.shouldKeepAlive
    last.shouldKeepAlive = false
  }

  #startFirst(connection: Connection): void {
    const [first] = connection.responses
    if (first === undefined) return
    connection.isRunning = true
    this.#start(first)
  }

  #destroy(connection: Connection): void {
    this.#forget(connection)
    connection.socket.destroy()
  }

  #forget(connection: Connection): void {
    if (connection.isClosed) return
    connection.isClosed = true
    this.#connections.delete(connection.socket)
    const { length } = connection.responses
    const release = (): void => {
      this.#requests -= length
    }
    // Node keeps the requests of a destroyed connection until its socket emits `close`. Node emits this event only
    // after it has read from all other connections.
    if (connection.socket.closed) release()
    else connection.socket.once("close", release)
    for (const { ownedBytes, workspace } of connection.responses) this.#unsent.add(-ownedBytes, workspace)
    connection.responses.length = 0
    connection.onIdle = undefined
  }

  /**
   * Destroys the connections that have been idle longest, rejected connections first. Destroys 1% of the maximum at a
   * time, so that the search for idle connections is rare.
   */
  #destroyLongestIdle(): void {
    const idle = Array.from(this.#connections.values()).filter(({ responses }) => responses.length === 0)
    const idleStart = ({ isRejected, idleSince }: Connection) => (isRejected ? 0 : idleSince)
    idle.sort((a, b) => idleStart(a) - idleStart(b))
    for (const connection of idle.slice(0, Math.ceil(this.#limits.maxConnections / 100)))
      this.#destroy(connection)
  }

  #sweep(): void {
    const { sweepIntervalMs } = this.#limits
    const now = performance.now()
    // A suspension of the process counts as at most two intervals, because no client could make progress meanwhile.
    const elapsedMs = Math.min(now - this.#now, 2 * sweepIntervalMs)
    this.#now = now
    for (const connection of this.#connections.values())
      if (!connection.isWithinTime(this.#limits, now, elapsedMs, this.#isDraining)) this.#destroy(connection)
  }
}
