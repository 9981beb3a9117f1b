import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"

/** The server cannot listen on the address for metrics. */
export class MetricsListenError extends Data.TaggedError("MetricsListenError")<{
  readonly message: string
}> {}

/**
 * Serves the metrics of this process as Prometheus text at `/metrics`, until the scope closes. Returns the address it
 * listens on; port 0 selects a free port.
 */
export const serveMetrics = Effect.fnUntraced(function* (host: string, port: number) {
  const context = yield* Effect.context<never>()
  const server = createServer((request, response) => {
    if (request.url !== "/metrics") {
      response.writeHead(404).end()
      return
    }
    response.setHeader("content-type", "text/plain; version=0.0.4; charset=utf-8")
    response.end(PrometheusMetrics.formatUnsafe(context))
  })
  const listen = Effect.callback<AddressInfo, MetricsListenError>((resume) => {
    server.once("error", ({ message }) =>
      resume(Effect.fail(new MetricsListenError({ message: `METRICS_PORT: ${message}` })))
    )
    server.listen(port, host, () => resume(Effect.succeed(server.address() as AddressInfo)))
  })
  return yield* Effect.acquireRelease(listen, () =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    })
  )
})
