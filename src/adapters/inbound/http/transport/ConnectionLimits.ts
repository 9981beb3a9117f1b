/** The limits on connections. Times are in milliseconds, sizes in bytes. docs/limits.md describes them. */
export const connectionLimits = {
  /** A client must send a complete request head within this time. */
  headersTimeoutMs: 10_000,
  /** A client must send a complete request within this time. */
  requestTimeoutMs: 15_000,
  /**
   * How long an idle connection stays open. Many load balancers reuse idle connections for up to 60 s, so this time
   * must be longer.
   */
  keepAliveTimeoutMs: 70_000,
  /** How long the server waits for the client of a rejected connection to close its half. */
  rejectionLingerMs: 1_000,
  /** A client that reads nothing of its responses for this time is disconnected. */
  stallTimeoutMs: 20_000,
  /** A client gets 1 s more for each block of this many bytes that it reads, up to `maxStallTimeoutMs`. */
  slowReaderBytesPerSecond: 16 * 1024,
  maxStallTimeoutMs: 60_000,
  /**
   * While bytes have been waiting for less than this time, progress does not extend the timeout beyond
   * `stallTimeoutMs`, because the bytes that are sent may only fill the socket buffers of the kernels.
   */
  socketFillMs: 5_000,
  /** The interval at which the time limits are checked. */
  sweepIntervalMs: 1_000,
  /** While the server drains, in-flight requests have this long to complete. */
  drainTimeoutMs: 10_000,
  /** While the server drains, an idle connection may still send a request for at most this long. */
  idleCloseGraceMs: 500,
  /** While the server drains, a client that has read nothing for this long is disconnected. */
  drainStallTimeoutMs: 8_000,
  maxHeadBytes: 16 * 1024,
  maxConnections: 10_000,
  /** The server stops reading from a connection that has this many pipelined requests waiting to start. */
  maxWaitingPerConnection: 64,
  /**
   * A connection with more than this many in-flight requests is destroyed. The server stops reading at
   * `maxWaitingPerConnection`, but one read from a socket can contain thousands of small requests, and Node parses all
   * of them.
   */
  maxParsedPerConnection: 1_000,
  /**
   * The maximum number of in-flight requests of all connections. Above this number, a further request destroys its
   * connection if the connection then has more than an equal share of the maximum.
   */
  maxRequests: 10_000,
  /**
   * The limit on the unsent response bytes of all connections. A large response that exceeds the share of its workspace
   * becomes 503. Small responses are never rejected (`smallBodyBytes`).
   */
  maxUnsentBytes: 128 * 1024 * 1024
}

export type ConnectionLimits = Readonly<typeof connectionLimits>

/** A response whose body has at most this many bytes never becomes 503 for lack of memory. */
export const smallBodyBytes = 64 * 1024
