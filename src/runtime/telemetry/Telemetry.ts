import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type { ServiceConfig } from "../config/Config.ts"
import { formatUrl } from "../config/ConfigRules.ts"
import * as Logging from "./Logging.ts"

// Optional parts are imported only if the configuration enables them, because each import makes the start slower.

/** Logs to stderr in the configured format and at the configured level. */
export const withLogging =
  ({ logLevel, logFormat }: ServiceConfig) =>
  <A, E, R>(program: Effect.Effect<A, E, R>) =>
    program.pipe(
      Effect.provide(Logging.layer(logFormat)),
      Effect.provideService(References.MinimumLogLevel, logLevel)
    )

/** Exports spans and metrics to the configured collector. If no collector is configured, no spans are created. */
export const withExport =
  ({ otlpEndpoint }: ServiceConfig) =>
  <A, E, R>(program: Effect.Effect<A, E, R>) =>
    otlpEndpoint === undefined
      ? Effect.provideService(program, References.TracerEnabled, false)
      : Effect.flatMap(
          Effect.promise(() => import("./Otlp.ts")),
          ({ layer }) => Effect.provide(program, layer)
        )

/** Measures this process if its metrics are exported or served. Serves the metrics if a port is configured. */
export const startMetrics = Effect.fnUntraced(function* ({
  host,
  metricsHost = host,
  metricsPort,
  otlpEndpoint
}: ServiceConfig) {
  if (metricsPort === undefined && otlpEndpoint === undefined) return
  const { measureProcess } = yield* Effect.promise(() => import("./ProcessMetrics.ts"))
  yield* measureProcess
  if (metricsPort === undefined) return
  const { serveMetrics } = yield* Effect.promise(() => import("./MetricsServer.ts"))
  yield* Effect.logInfo(`Metrics on ${formatUrl(yield* serveMetrics(metricsHost, metricsPort))}/metrics`)
})
