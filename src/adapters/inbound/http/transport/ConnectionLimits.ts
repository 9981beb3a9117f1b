/** The limits on connections. Times are in milliseconds, sizes in bytes. docs/limits.md describes them. */
export interface ConnectionLimits {
  /** A client must send a complete request head within this time. */
  readonly headersTimeoutMs: number
  /** A client must send a complete request within this time. */
  readonly requestTimeoutMs: number
  /**
   * How long an idle connection stays open. Many load balancers reuse idle connections for up to 60 s, so this time
   * must be longer.
   */
  readonly keepAliveTimeoutMs: number
  /** How long the server waits for the client of a rejected connection to close its half. */
  readonly rejectionLingerMs: number
  /** A client that reads nothing of its responses for this time is disconnected. */
  readonly stallTimeoutMs: number
  /** A client gets 1 s more for each block of this many bytes that it reads, up to `maxStallTimeoutMs`. */
  readonly slowReaderBytesPerSecond: number
  readonly maxStallTimeoutMs: number
  /**
   * While bytes have been waiting for less than this time, progress does not extend the timeout beyond
   * `stallTimeoutMs`, because the bytes that are sent may only fill the socket buffers of the kernels.
   */
  readonly socketFillMs: number
  /** The interval at which the time limits are checked. */
  readonly sweepIntervalMs: number
  /** While the server drains, in-flight requests have this long to complete. */
  readonly drainTimeoutMs: number
  /** While the server drains, an idle connection may still send a request for at most this long. */
  readonly idleCloseGraceMs: number
  /** While the server drains, a client that has read nothing for this long is disconnected. */
  readonly drainStallTimeoutMs: number
  readonly maxHeadBytes: number
  readonly maxConnections: number
  /** The server stops reading from a connection that has this many pipelined requests waiting to start. */
  readonly maxWaitingPerConnection: number
  /**
   * A connection with more than this many in-flight requests is destroyed. The server stops reading at
   * `maxWaitingPerConnection`, but one read from a socket can contain thousands of small requests, and Node parses all
   * of them.
   */
  readonly maxParsedPerConnection: number
  /**
   * The maximum number of in-flight requests of all connections. Above this number, a further request destroys its
   * connection if the connection then has more than an equal share of the maximum.
   */
  readonly maxRequests: number
  /**
   * The limit on the unsent response bytes of all connections. A large response that exceeds the share of its workspace
   * becomes 503. Small responses are never rejected (`smallBodyBytes`).
   */
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
  maxWaitingPerConnection: 64,
  maxParsedPerConnection: 1_000,
  maxRequests: 10_000,
  maxUnsentBytes: 128 * 1024 * 1024
}

/** A response whose body has at most this many bytes never becomes 503 for lack of memory. */
export const smallBodyBytes = 64 * 1024
