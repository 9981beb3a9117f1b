import { type IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { type ConnectionLimits, smallBodyBytes } from "./ConnectionLimits.ts"
import type { Answer } from "./Message.ts"

/** The memory that a finished response holds beside its body, roughly. */
const responseOverheadBytes = 1024

/** Node's own handle of a socket: the bytes written so far, and those of them that the kernel has not accepted yet. */
interface SocketHandle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}

/**
 * The progress of a large write shows nowhere else: `socket.bytesWritten` counts bytes that are still queued, and
 * `socket.writableLength` falls only when the whole write is done.
 */
const handleOf = (socket: Socket): SocketHandle | undefined =>
  (socket as unknown as { readonly _handle?: SocketHandle | null })._handle ?? undefined

/**
 * Makes Node's parser drop the requests that are left in the chunk it is reading, up to 2,500 in 64 KiB: parsing them for
 * a connection that is gone is what a flood of pipelined requests costs most. 2 stands for "upgraded" and stops the
 * parser; without this internal of Node the requests are parsed in vain.
 */
const stopParsing = (socket: Socket): void => {
  const { parser } = socket as unknown as { readonly parser?: { onIncoming?: () => number } | null }
  if (parser?.onIncoming) parser.onIncoming = () => 2
}

const ignoreError = (): void => {}

/** The state of one connection. */
class Connection {
  readonly owner: Exchanges
  readonly socket: Socket
  /** In-flight responses in the order of their requests. The first `started` requests run or have run. */
  readonly responses: Array<TrackedResponse> = []
  started = 0
  /** Requests that run and have no response yet. */
  running = 0
  isStarting = false
  isPaused = false
  isClosed = false
  /** Bytes of responses that the client has not taken. */
  unsentBytes = 0
  /** The latest request, unless it has arrived completely and its response is sent. */
  latest: IncomingMessage | undefined = undefined
  onIdle: (() => void) | undefined = undefined
  isRejected = false
  /** When the rejection was sent; undefined until then. */
  rejectedAt: number | undefined = undefined
  idleSince: number
  /** The bytes that the kernel had accepted at the last sweep; undefined if none were left to accept. */
  takenBytes: number | undefined = undefined
  unsentSince = 0
  /** When the client last took anything, as far as sweeps have seen. */
  progressAt = 0
  /** How much longer the client may take nothing. */
  patienceMs = 0

  constructor(owner: Exchanges, socket: Socket, now: number) {
    this.owner = owner
    this.socket = socket
    this.idleSince = now
  }
}

/** A response that knows its connection and the memory that it holds. */
export class TrackedResponse extends ServerResponse {
  tracked: Connection | undefined = undefined
  heldBytes = 0
  /** The part of the body that no other response shares. */
  ownedBytes = 0
  /** Whether the client wanted to keep the connection, for a response that a shutdown has marked as the last one. */
  keepsAlive = true
}

/** A listener of the response's `close` event: the response was sent, or its connection is gone. */
function onResponseClose(this: ServerResponse): void {
  const response = this as TrackedResponse
  response.tracked?.owner.end(response)
}

/** Runs a request. `Exchanges.answered` must be called once its response is known, at once or later. */
export type StartRequest = (response: TrackedResponse) => void

/**
 * Owns every connection from its accept to its close: its error listener, its in-flight responses, the memory that they
 * hold, and the time that its client may take. All times are checked by one sweep; docs/operations.md describes them.
 */
export class Exchanges {
  readonly #limits: ConnectionLimits
  readonly #start: StartRequest
  readonly #connections = new Map<Duplex, Connection>()
  readonly #sweeper: NodeJS.Timeout
  /** The time of the last sweep: exact enough for the age of a connection, and free. */
  #now = performance.now()
  #requests = 0
  #ownedBytes = 0
  #isClosing = false

  constructor(limits: ConnectionLimits, start: StartRequest) {
    this.#limits = limits
    this.#start = start
    this.#sweeper = setInterval(() => this.#sweep(), limits.sweepIntervalMs).unref()
  }

  /** Starts to own a connection. Above the limit, the connections that have been idle longest make room. */
  open(socket: Socket): void {
    // Node removes its own error listener before it emits `connect`.
    socket.on("error", ignoreError)
    if (this.#connections.size >= this.#limits.maxConnections) this.#destroyLongestIdle()
    if (this.#connections.size >= this.#limits.maxConnections) {
      socket.destroy()
      return
    }
    const connection = new Connection(this, socket, this.#now)
    this.#connections.set(socket, connection)
    // Node makes two errors for each pipelined request of a connection that closes; their stacks take seconds in all.
    let { stackTraceLimit } = Error
    socket.prependOnceListener("close", () => {
      stackTraceLimit = Error.stackTraceLimit
      Error.stackTraceLimit = 0
    })
    socket.once("close", () => {
      Error.stackTraceLimit = stackTraceLimit
      this.#forget(connection)
    })
    // Node resumes a socket whenever a request ends.
    socket.on("resume", () => {
      if (connection.isPaused) socket.pause()
    })
  }

  /** Tracks a request, and starts it unless earlier requests of the same connection must proceed first. */
  begin(request: IncomingMessage, response: TrackedResponse): void {
    const connection = this.#connections.get(request.socket)
    if (connection === undefined || connection.isRejected) return
    const { responses } = connection
    if (this.#isClosing && responses.length > 0) {
      const last = responses[responses.length - 1]!
      if (last.headersSent) return
      last.shouldKeepAlive = last.keepsAlive
    }
    connection.latest = request
    // Upgrades are not supported, and Node stops parsing after an Upgrade header.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    responses.push(response)
    response.tracked = connection
    response.on("close", onResponseClose)
    if (this.#isClosing) this.#markLast(connection)
    const { maxRequests, maxWaitingPerConnection } = this.#limits
    if (++this.#requests > maxRequests && responses.length * this.#connections.size > maxRequests) {
      this.#destroy(connection)
      stopParsing(connection.socket)
      return
    }
    this.#startWaiting(connection)
    if (responses.length - connection.started >= maxWaitingPerConnection && !connection.isPaused) {
      connection.isPaused = true
      connection.socket.pause()
    }
  }

  /** True if the clients leave room for another response body of this size. Small bodies always have room. */
  hasRoom(bytes: number): boolean {
    return bytes <= smallBodyBytes || this.#ownedBytes + bytes <= this.#limits.maxUnsentBytes
  }

  /** Accounts for the response that is about to be written; undefined if the request ended without one. */
  answered(response: TrackedResponse, answer: Answer | undefined): void {
    const connection = response.tracked
    if (connection === undefined || connection.isClosed) return
    connection.running--
    if (answer !== undefined && response.req.method !== "HEAD") {
      const { length } = answer.body
      response.heldBytes = length + responseOverheadBytes
      connection.unsentBytes += response.heldBytes
      if (answer.isShared !== true) {
        response.ownedBytes = length
        this.#ownedBytes += length
      }
    }
    this.#startWaiting(connection)
  }

  /** Releases what a response held, once it is sent. */
  end(response: TrackedResponse): void {
    const connection = response.tracked!
    if (connection.isClosed) return
    const { responses } = connection
    const index = responses.indexOf(response)
    responses.splice(index, 1)
    if (index < connection.started) connection.started--
    this.#requests--
    this.#ownedBytes -= response.ownedBytes
    connection.unsentBytes -= response.heldBytes
    connection.idleSince = this.#now
    if (connection.latest === response.req && response.req.complete) connection.latest = undefined
    if (responses.length === 0) connection.onIdle?.()
    else if (responses.length > connection.started) this.#startWaiting(connection)
    if (connection.isPaused && responses.length === connection.started && !connection.isRejected) {
      connection.isPaused = false
      connection.socket.resume()
    }
  }

  /**
   * Runs `reject` once no response is in flight on the connection. `reject` writes the rejection, calls its argument
   * when the rejection is sent, and returns false if there is nobody to write it to. Does nothing for a connection that
   * is rejected already: the rest of its bytes is discarded.
   */
  reject(socket: Socket, reject: (onSent: () => void) => boolean): void {
    const connection = this.#connections.get(socket)
    if (connection === undefined) {
      socket.destroy()
      return
    }
    if (connection.isRejected) return
    const run = () => {
      connection.isRejected = true
      connection.isPaused = false
      const isWritten = reject(() => {
        connection.rejectedAt = performance.now()
      })
      // The bytes that still arrive are discarded: unread, they would reset the connection under the rejection.
      if (isWritten) socket.resume()
      else this.#destroy(connection)
    }
    if (connection.responses.length === 0) run()
    else {
      connection.onIdle = run
      connection.isPaused = true
      socket.pause()
    }
  }

  /** True if the latest request's body has not arrived completely: a parse error there is not answered again. */
  isMidRequest(socket: Socket): boolean {
    return this.#connections.get(socket)?.latest?.complete === false
  }

  /** From now on the last in-flight response of each connection closes it. Clients that have stalled are cut off. */
  close(): void {
    this.#isClosing = true
    this.#sweep()
    for (const connection of this.#connections.values()) {
      const { takenBytes, progressAt } = connection
      if (takenBytes !== undefined && this.#now - progressAt > this.#limits.stallBeforeDrainMs)
        this.#destroy(connection)
      else this.#markLast(connection)
    }
  }

  /** Destroys every connection without in-flight responses. */
  destroyIdle(): void {
    for (const connection of this.#connections.values())
      if (connection.responses.length === 0) this.#destroy(connection)
  }

  /** Destroys every connection that is left, and stops the sweep. Gives the number of in-flight responses lost. */
  destroyAll(): number {
    const lost = this.#requests
    clearInterval(this.#sweeper)
    for (const connection of this.#connections.values()) this.#destroy(connection)
    return lost
  }

  #markLast({ responses }: Connection): void {
    const last = responses[responses.length - 1]
    if (last === undefined) return
    last.keepsAlive = last.shouldKeepAlive
    last.shouldKeepAlive = false
  }

  /** Starts requests in order, as many as may run and as long as the client takes the responses. */
  #startWaiting(connection: Connection): void {
    if (connection.isStarting) return
    const { maxRunningPerConnection, maxUnsentBytesPerConnection } = this.#limits
    connection.isStarting = true
    while (
      connection.started < connection.responses.length &&
      connection.running < maxRunningPerConnection &&
      connection.unsentBytes < maxUnsentBytesPerConnection &&
      !connection.isClosed
    ) {
      connection.running++
      this.#start(connection.responses[connection.started++]!)
    }
    connection.isStarting = false
  }

  #destroy(connection: Connection): void {
    this.#forget(connection)
    connection.socket.destroy()
  }

  #forget(connection: Connection): void {
    if (connection.isClosed) return
    connection.isClosed = true
    this.#connections.delete(connection.socket)
    this.#requests -= connection.responses.length
    for (const { ownedBytes } of connection.responses) this.#ownedBytes -= ownedBytes
    connection.responses.length = 0
    connection.onIdle = undefined
  }

  /** Destroys the longest idle hundredth, so that the search for them is rare. Rejected connections come first. */
  #destroyLongestIdle(): void {
    const idle = Array.from(this.#connections.values()).filter(({ responses }) => responses.length === 0)
    const age = ({ isRejected, idleSince }: Connection) => (isRejected ? 0 : idleSince)
    idle.sort((a, b) => age(a) - age(b))
    for (const connection of idle.slice(0, Math.ceil(this.#limits.maxConnections / 100)))
      this.#destroy(connection)
  }

  #sweep(): void {
    const { sweepIntervalMs, keepAliveTimeoutMs, headersTimeoutMs, rejectionLingerMs } = this.#limits
    const now = performance.now()
    // While the process was suspended nobody could take anything.
    const elapsedMs = Math.min(now - this.#now, 2 * sweepIntervalMs)
    this.#now = now
    for (const connection of this.#connections.values()) {
      const { socket, isRejected, rejectedAt, idleSince } = connection
      if (connection.responses.length === 0 && !isRejected) {
        connection.takenBytes = undefined
        // Node's own timers are shorter; this one holds for connections that they miss.
        if (now - idleSince > keepAliveTimeoutMs + headersTimeoutMs) this.#destroy(connection)
        continue
      }
      const handle = handleOf(socket)
      if (handle !== undefined && handle.writeQueueSize > 0) this.#checkReader(connection, handle, elapsedMs)
      else {
        connection.takenBytes = undefined
        if (rejectedAt !== undefined && now - rejectedAt > rejectionLingerMs) this.#destroy(connection)
      }
    }
  }

  /** Destroys a connection whose client takes its responses too slowly, or not at all. */
  #checkReader(connection: Connection, handle: SocketHandle, elapsedMs: number): void {
    const { stallTimeoutMs, maxStallTimeoutMs, socketFillMs, slowReaderBytesPerSecond } = this.#limits
    const takenBytes = handle.bytesWritten - handle.writeQueueSize
    if (connection.takenBytes === undefined) {
      connection.patienceMs = stallTimeoutMs
      connection.unsentSince = this.#now
      connection.progressAt = this.#now
    } else {
      const progressBytes = takenBytes - connection.takenBytes
      if (progressBytes > 0) connection.progressAt = this.#now
      const earnedMs = (progressBytes / slowReaderBytesPerSecond) * 1_000
      // At first it is the kernels' buffers that take bytes, whether or not the client reads.
      const isFilling = this.#now - connection.unsentSince < socketFillMs
      const mostMs = isFilling ? stallTimeoutMs : maxStallTimeoutMs
      connection.patienceMs = Math.min(connection.patienceMs - elapsedMs + earnedMs, mostMs)
    }
    connection.takenBytes = takenBytes
    if (connection.patienceMs <= 0) this.#destroy(connection)
  }
}
