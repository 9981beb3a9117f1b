/** Bounds on the connections of the server: times in milliseconds, sizes in bytes. docs/limits.md describes them. */
export interface ConnectionLimits {
  /** A client must send a complete request head within this time. */
  readonly headersTimeoutMs: number
  /** A client must send a complete request within this time. */
  readonly requestTimeoutMs: number
  /** An idle connection stays open this long: more than 60 s, after which load balancers stop reusing a connection. */
  readonly keepAliveTimeoutMs: number
  /** A rejected connection whose client keeps its half open is destroyed this long after the rejection was written. */
  readonly rejectionLingerMs: number
  /** A client that reads nothing of its responses is disconnected after this time. */
  readonly stallTimeoutMs: number
  /** A client that reads gets 1 s more for each of this many bytes, up to `maxStallTimeoutMs`. */
  readonly slowReaderBytesPerSecond: number
  readonly maxStallTimeoutMs: number
  /** Bytes that are sent within this time after a write do not extend the timeout: they fill the kernels' socket buffers. */
  readonly socketFillMs: number
  /** The interval at which all of the above are checked. */
  readonly sweepIntervalMs: number
  /** In-flight requests may take this long once the server accepts no new requests. */
  readonly drainTimeoutMs: number
  /** While the server drains, an idle connection may still send a request for this long. */
  readonly idleCloseGraceMs: number
  /** While the server drains, a client that has read nothing for this long is disconnected. */
  readonly drainStallTimeoutMs: number
  readonly maxHeadBytes: number
  readonly maxConnections: number
  /** Pipelined requests of a connection that run at the same time. */
  readonly maxRunningPerConnection: number
  /** The server does not read from a connection with this many pipelined requests that do not run yet. */
  readonly maxWaitingPerConnection: number
  /**
   * A connection with more pipelined requests that do not run yet is destroyed. The server stops reading at
   * `maxWaitingPerConnection`, but one read from a socket may contain thousands of small requests, all of which are
   * parsed.
   */
  readonly maxParsedPerConnection: number
  /**
   * A pipelined request does not start while the client has this many bytes of earlier responses left to receive.
   */
  readonly maxUnsentBytesPerConnection: number
  /** In-flight requests of all connections. Above this, connections that exceed their equal share are destroyed. */
  readonly maxRequests: number
  /** Response bytes of all connections that clients have not received. Large responses beyond a fair share become 503. */
  readonly maxUnsentBytes: number
}

export const connectionLimits: ConnectionLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 70_000,
  rejectionLingerMs: 1_000,
  stallTimeoutMs: 20_000,
  slowReaderBytesPerSecond: 16 * 1024,
  maxStallTimeoutMs: 60_000,
  socketFillMs: 5_000,
  sweepIntervalMs: 1_000,
  drainTimeoutMs: 10_000,
  idleCloseGraceMs: 500,
  drainStallTimeoutMs: 8_000,
  maxHeadBytes: 16 * 1024,
  maxConnections: 10_000,
  maxRunningPerConnection: 16,
  maxWaitingPerConnection: 64,
  maxParsedPerConnection: 1_000,
  maxUnsentBytesPerConnection: 1024 * 1024,
  maxRequests: 10_000,
  maxUnsentBytes: 128 * 1024 * 1024
}

/** A response body up to this size never becomes 503, however much memory other responses hold. */
export const smallBodyBytes = 64 * 1024
