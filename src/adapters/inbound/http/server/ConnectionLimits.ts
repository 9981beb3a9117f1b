/**
 * The limits on connections. Names that Node defines, such as `headersTimeout`, are options of Node's HTTP server.
 * Times are in milliseconds, sizes in bytes. docs/limits.md describes the limits.
 */
export const connectionLimits = {
  /** A client must send a complete request head within this time. */
  headersTimeout: 10_000,
  /** A client must send a complete request within this time. */
  requestTimeout: 15_000,
  /** The interval at which Node checks the two limits above. */
  connectionsCheckingInterval: 1_000,
  /** The server closes a connection on which no byte is sent or received for this long, unless the connection is idle. */
  timeout: 20_000,
  /** How long an idle connection stays open. Many load balancers reuse connections for 60 s. */
  keepAliveTimeout: 70_000,
  maxHeaderSize: 16 * 1024,
  maxConnections: 10_000,
  /** The server destroys a connection if a request arrives while this many of its responses are in flight. */
  maxPipelined: 100,
  /** How long a connection stays open after its last response, so that the client can read this response. */
  lingerMs: 1_000,
  /** While the server drains, in-flight requests have this long to complete. */
  drainTimeoutMs: 10_000,
  /** While the server drains, an idle connection may still send a request for at most this long. */
  idleCloseGraceMs: 500,
  /** The limit on the unsent response bytes of all connections. */
  maxUnsentBytes: 128 * 1024 * 1024
}

export type ConnectionLimits = Readonly<typeof connectionLimits>
