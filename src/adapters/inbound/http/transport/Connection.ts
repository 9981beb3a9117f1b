import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import { ServerResponse } from "./NodeHttp.ts"
import { findSocketHandle } from "./NodeInternals.ts"
import { ReaderProgress } from "./ReaderProgress.ts"

/** The state of one connection, which its `ConnectionTracker` updates. */
export class Connection {
  readonly socket: Socket
  /** Releases a response of this connection when the response is sent. */
  readonly release: (response: TrackedResponse) => void
  /** In-flight responses in the order of their requests. Only the first request has started; the others wait. */
  readonly responses: Array<TrackedResponse> = []
  /** True while the first request has no response yet. */
  isRunning = false
  isPaused = false
  isClosed = false
  readonly #reader = new ReaderProgress()
  /** The latest request; undefined once the request has arrived completely and its response is sent. */
  latestRequest: IncomingMessage | undefined = undefined
  /** Runs as soon as no response is in flight. */
  onIdle: (() => void) | undefined = undefined
  isRejected = false
  /** When the rejection was sent; undefined until then. */
  rejectedAt: number | undefined = undefined
  idleSince: number

  constructor(socket: Socket, release: (response: TrackedResponse) => void, now: number) {
    this.socket = socket
    this.release = release
    this.idleSince = now
  }

  /**
   * Returns false if the client has exceeded one of its time limits.
   *
   * @param elapsedMs the time since the last call, but at most two sweep intervals
   */
  isWithinTime(limits: ConnectionLimits, now: number, elapsedMs: number, isDraining: boolean): boolean {
    const { keepAliveTimeoutMs, headersTimeoutMs, rejectionLingerMs, drainStallTimeoutMs } = limits
    if (this.responses.length === 0 && !this.isRejected) {
      this.#reader.reset()
      // Node's own timers are shorter. This limit is for connections that Node's timers miss.
      return now - this.idleSince <= keepAliveTimeoutMs + headersTimeoutMs
    }
    const handle = findSocketHandle(this.socket)
    if (handle !== undefined && handle.writeQueueSize > 0) {
      const isWithinTime = this.#reader.check(handle, limits, now, elapsedMs)
      return isWithinTime && !(isDraining && this.#reader.hasStalled(now, drainStallTimeoutMs))
    }
    this.#reader.reset()
    return this.rejectedAt === undefined || now - this.rejectedAt <= rejectionLingerMs
  }
}

/** Node's response to one request, with its connection and the memory that the response holds. */
export class TrackedResponse extends ServerResponse {
  connectionState: Connection | undefined = undefined
  /**
   * The bytes of the body that count as unsent memory: all bytes, or none if the body is permanent or the request is a
   * HEAD.
   */
  ownedBytes = 0
  /** The workspace whose unsent memory includes `ownedBytes`. */
  workspace: WorkspaceId | undefined = undefined
  /** The value that `shouldKeepAlive` had before a shutdown set it to false. */
  shouldKeepAliveBeforeDrain = true
  /** True if the request has an `Expect` header other than `100-continue`. */
  hasUnmetExpectation = false
  /**
   * True from the start of a streamed response. If a further request arrives on its connection, the connection is
   * destroyed.
   */
  isStreamed = false
}
