/** Bounds on the connections of the server: times in milliseconds, sizes in bytes. docs/operations.md describes them. */
export interface ConnectionLimits {
  /** A connection must send a whole request head within this time, and a whole request within the second one. */
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  /** An idle connection stays open this long. It must exceed the 60 s after which load balancers stop reusing one. */
  readonly keepAliveTimeoutMs: number
  /** A rejected connection whose client keeps its half open is destroyed this long after the rejection was written. */
  readonly rejectionLingerMs: number
  /** A client that takes no byte of its responses is disconnected after this time. */
  readonly stallTimeoutMs: number
  /** A client that takes bytes earns 1 s for each of this many, up to the maximum below. */
  readonly slowReaderBytesPerSecond: number
  readonly maxStallTimeoutMs: number
  /** For this long the buffers of the kernels fill up, which earns a client nothing. */
  readonly socketFillMs: number
  /** The interval at which all of the above are checked. */
  readonly sweepIntervalMs: number
  /** In-flight requests may take this long once the server accepts no new ones. */
  readonly drainTimeoutMs: number
  /** While the server drains, an idle connection may still send a request for this long. */
  readonly idleCloseGraceMs: number
  /** When a shutdown starts, a client that has taken nothing for this long is disconnected rather than waited for. */
  readonly stallBeforeDrainMs: number
  readonly maxHeadBytes: number
  readonly maxConnections: number
  /** Pipelined requests of a connection that run at the same time. */
  readonly maxRunningPerConnection: number
  /** A connection with this many pipelined requests that do not run yet is not read from. */
  readonly maxWaitingPerConnection: number
  /** No pipelined request starts while the client has not taken this many bytes of earlier responses. */
  readonly maxUnsentBytesPerConnection: number
  /** Requests in flight on all connections, beyond which connections that exceed their equal share are destroyed. */
  readonly maxRequests: number
  /** Response bytes that clients have not taken on all connections, beyond which large responses become 503. */
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
  stallBeforeDrainMs: 5_000,
  maxHeadBytes: 16 * 1024,
  maxConnections: 10_000,
  maxRunningPerConnection: 16,
  maxWaitingPerConnection: 64,
  maxUnsentBytesPerConnection: 1024 * 1024,
  maxRequests: 10_000,
  maxUnsentBytes: 128 * 1024 * 1024
}

/** A response body up to this size never becomes 503 for the memory of others. */
export const smallBodyBytes = 64 * 1024
