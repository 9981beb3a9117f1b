import * as Effect from "effect/Effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { connectionLimits } from "../../adapters/inbound/http/server/ConnectionLimits.ts"
import { listen } from "../../adapters/inbound/http/server/Listen.ts"
import { createServer } from "../../adapters/inbound/http/server/NodeHttp.ts"

/** Serves `/metrics` as Prometheus text until the scope closes. Returns the address; port 0 selects a free port. */
export const serveMetrics = Effect.fnUntraced(function* (host: string, port: number) {
  const context = yield* Effect.context<never>()
  const server = createServer(connectionLimits, (request, response) => {
    response.shouldKeepAlive = false
    if (request.url !== "/metrics") {
      response.writeHead(404).end()
      return
    }
    response.setHeader("content-type", "text/plain; version=0.0.4; charset=utf-8")
    response.end(PrometheusMetrics.formatUnsafe(context))
  })
  // Without this limit, a connection that pipelines requests would hold a copy of all metrics for each request.
  server.maxRequestsPerSocket = 1
  server.maxConnections = 100
  // Closes the connection of a client that does not read its response.
  server.timeout = 30_000
  // Node removes its error listener from a CONNECT request's socket. An error of that socket would then end the process.
  server.on("connection", (socket) => socket.on("error", () => {}))
  const listening = listen(server, { host, port }, "METRICS_HOST and METRICS_PORT")
  return yield* Effect.acquireRelease(listening, () =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    })
  )
})
