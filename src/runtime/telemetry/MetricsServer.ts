import type { AddressInfo, Socket } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { createServer } from "../../adapters/inbound/http/transport/NodeHttp.ts"

export class MetricsListenError extends Data.TaggedError("MetricsListenError")<{
  readonly message: string
}> {}

const metricsLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  connectionsCheckingIntervalMs: 1_000,
  /** A connection without progress during a request is closed after this time. */
  inactivityTimeoutMs: 30_000,
  /** A scraper may keep its connection open between two scrapes for this time. */
  keepAliveTimeoutMs: 75_000,
  maxConnectionAgeMs: 10 * 60_000,
  maxConnections: 100
}

/**
 * Serves the metrics of this process as Prometheus text at `/metrics`, until the scope closes. Returns the address of
 * the server; port 0 selects a free port.
 */
export const serveMetrics = Effect.fnUntraced(function* (host: string, port: number) {
  const context = yield* Effect.context<never>()
  /** The open connections. The value is true while a request is in flight on the connection. */
  const connections = new Map<Socket, boolean>()
  const server = createServer(
    {
      headersTimeout: metricsLimits.headersTimeoutMs,
      requestTimeout: metricsLimits.requestTimeoutMs,
      connectionsCheckingInterval: metricsLimits.connectionsCheckingIntervalMs,
      keepAliveTimeout: metricsLimits.keepAliveTimeoutMs
    },
    (request, response) => {
      const { socket } = request
      // Reject pipelined requests: scrapers do not send them, and each response in flight would be a copy of all
      // metrics.
      if (connections.get(socket) !== false) {
        socket.destroy()
        return
      }
      connections.set(socket, true)
      response.once("close", () => {
        if (connections.has(socket)) connections.set(socket, false)
      })
      if (request.url !== "/metrics") {
        response.writeHead(404).end()
        return
      }
      response.setHeader("content-type", "text/plain; version=0.0.4; charset=utf-8")
      response.end(PrometheusMetrics.formatUnsafe(context))
    }
  )
  server.maxConnections = metricsLimits.maxConnections
  server.timeout = metricsLimits.inactivityTimeoutMs
  server.on("connection", (socket: Socket) => {
    // Node removes its own error listener from the socket of a CONNECT request.
    socket.on("error", () => {})
    connections.set(socket, false)
    // The inactivity timeout never closes the connection of a client that keeps sending single bytes.
    const ageTimer = setTimeout(() => socket.destroy(), metricsLimits.maxConnectionAgeMs).unref()
    socket.once("close", () => {
      clearTimeout(ageTimer)
      connections.delete(socket)
    })
  })
  const listen = Effect.callback<AddressInfo, MetricsListenError>((resume) => {
    server.once("error", ({ message }) => resume(Effect.fail(new MetricsListenError({ message }))))
    server.listen(port, host, () => resume(Effect.succeed(server.address() as AddressInfo)))
  })
  return yield* Effect.acquireRelease(listen, () =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      for (const socket of connections.keys()) socket.destroy()
    })
  )
})
