import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { ServerResponse } from "./NodeHttp.ts"
import { ReaderProgress } from "./ReaderProgress.ts"

/** The state of one connection, which its `ConnectionTracker` updates. */
export class Connection {
  readonly socket: Socket
  /** Releases a response of this connection once it is sent. */
  readonly release: (response: TrackedResponse) => void
  /**
   * In-flight responses in the order of their requests. The requests of the first `startedCount` responses have
   * started.
   */
  readonly responses: Array<TrackedResponse> = []
  startedCount = 0
  /** Requests that run and have no response yet. */
  runningCount = 0
  isStarting = false
  isPaused = false
  isClosed = false
  /** Bytes of responses that the client has not received. */
  unsentBytes = 0
  readonly reader = new ReaderProgress()
  /** The latest request, unless it has arrived completely and its response is sent. */
  latestRequest: IncomingMessage | undefined = undefined
  /** Runs once no response is in flight. */
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
}

/** Node's response to one request, with its connection and the memory that it holds. */
export class TrackedResponse extends ServerResponse {
  connectionState: Connection | undefined = undefined
  heldBytes = 0
  /** The bytes of the body that no other response shares. */
  ownedBytes = 0
  /** The workspace that `ownedBytes` count for. */
  workspace: WorkspaceId | undefined = undefined
  /** True if the client asked for keep-alive, whatever a shutdown has set in `shouldKeepAlive`. */
  keepsAlive = true
  /** True if the request has an `Expect` header other than `100-continue`. */
  hasUnmetExpectation = false
  /** True once the response is streamed. Its connection runs no further request. */
  isStreamed = false
}
