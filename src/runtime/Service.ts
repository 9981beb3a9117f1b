import { resolve } from "node:path"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import { MountedEndpoint } from "../adapters/inbound/http/MountedEndpoint.ts"
import * as HttpServer from "../adapters/inbound/http/server/Serve.ts"
import { migrate } from "../adapters/outbound/postgres/schema/Migrations.ts"
import { assertReadable } from "../adapters/outbound/postgres/schema/SchemaVersion.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import { programVersion } from "../application/ProgramVersion.ts"
import { isUnavailable } from "../application/ports/Unavailable.ts"
import type { ServiceConfig } from "./config/Config.ts"
import { collectWhenIdle, limitHeapGrowth } from "./GarbageCollection.ts"
import { standaloneLayer } from "./layers/ServiceLayers.ts"
import { describeDatabaseUrl, describeRedisUrl, formatUrl } from "./telemetry/LoggedUrls.ts"

/** Logs the main settings. This line is the first log line of every start. */
const logStart = ({ databaseUrl, databaseFeedUrl, dataDir, redisUrl, rateLimits, mcp }: ServiceConfig) =>
  Effect.logInfo("Starting prompt-retrieval", {
    version: programVersion,
    node: process.versions.node,
    database:
      databaseUrl === undefined
        ? `embedded in ${resolve(dataDir)}`
        : describeDatabaseUrl(Redacted.value(databaseUrl)),
    ...(databaseFeedUrl !== undefined && {
      database_feed: describeDatabaseUrl(Redacted.value(databaseFeedUrl))
    }),
    redis: redisUrl === undefined ? "none" : describeRedisUrl(Redacted.value(redisUrl)),
    rate_limit_per_key: rateLimits.perKey,
    rate_limit_per_process: rateLimits.perProcess,
    mcp: mcp ? "on" : "off"
  })

// Optional modules are imported only if the configuration enables them, because each import makes the start slower.

/** Exports spans and metrics to the configured collector. If no collector is configured, no spans are created. */
const exportLayer = ({ otlpEndpoint }: ServiceConfig) =>
  otlpEndpoint === undefined
    ? Layer.succeed(References.TracerEnabled, false)
    : Layer.unwrap(Effect.promise(async () => (await import("./telemetry/Otlp.ts")).layer))

/** Measures this process if its metrics are exported or served. Serves the metrics if a port is configured. */
const startMetrics = Effect.fnUntraced(function* (config: ServiceConfig) {
  const { host, metricsHost = host, metricsPort, otlpEndpoint } = config
  if (metricsPort === undefined && otlpEndpoint === undefined) return
  const { measureProcess } = yield* Effect.promise(() => import("./telemetry/ProcessMetrics.ts"))
  yield* measureProcess
  if (metricsPort === undefined) return
  const { serveMetrics } = yield* Effect.promise(() => import("./telemetry/MetricsServer.ts"))
  yield* Effect.logInfo(`Metrics on ${formatUrl(yield* serveMetrics(metricsHost, metricsPort))}/metrics`)
})

/** Creates the demo workspace if the database has no workspace. Only this effect loads the use cases of operators. */
const seed = ({ actor }: ServiceConfig, url: string) =>
  Effect.flatMap(
    Effect.promise(() => import("./DemoWorkspace.ts")),
    ({ seedDemoWorkspace }) => seedDemoWorkspace(url, actor)
  )

const mcpLayer = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../adapters/inbound/mcp/McpEndpoint.ts")),
    ({ makeMcpEndpoint }) => Layer.effect(MountedEndpoint, makeMcpEndpoint)
  )
)

/** Runs the embedded database in this process. */
const openEmbedded = (config: ServiceConfig) =>
  Effect.flatMap(
    Effect.promise(() => import("../adapters/outbound/postgres/embedded/EmbeddedPostgres.ts")),
    ({ open }) => open(config)
  )

/** The use cases and adapters that respond to requests. */
const serveLayer = (config: ServiceConfig) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { databaseUrl, mcp } = config
      const database = databaseUrl === undefined ? yield* openEmbedded(config) : { url: databaseUrl }
      return Layer.provideMerge(mcp ? mcpLayer : Layer.empty, standaloneLayer(config, database))
    })
  )

/**
 * Listens, migrates the database, serves until the effect is interrupted, and then drains. Listens before PostgreSQL is
 * available, and serves once the migration has succeeded and the tables are readable. If `demo` is true and an embedded
 * database has no workspace, creates the demo workspace.
 */
export const serve = (config: ServiceConfig, { demo }: { readonly demo: boolean }) => {
  // The inner scope drains the server before the services that the server uses are closed.
  const listenAndServe = Effect.gen(function* () {
    const url = formatUrl(yield* HttpServer.serve(config))
    yield* Effect.addFinalizer(() =>
      Effect.logInfo("Shutting down prompt-retrieval", {
        version: programVersion,
        shutdown_grace_ms: config.shutdownGraceMs
      })
    )
    yield* Effect.logInfo(`Listening on ${url}`)
    yield* Effect.retry(Effect.andThen(migrate, assertReadable), {
      while: isUnavailable,
      schedule: Schedule.spaced("500 millis")
    })
    yield* (yield* Lifecycle).markServing
    yield* Effect.logInfo("Ready to serve requests")
    limitHeapGrowth()
    if (demo && config.databaseUrl === undefined) yield* seed(config, url)
    return yield* collectWhenIdle
  }).pipe(Effect.scoped, Effect.provide(serveLayer(config)))
  return logStart(config).pipe(
    Effect.andThen(startMetrics(config)),
    Effect.andThen(listenAndServe),
    Effect.scoped,
    Effect.provide(exportLayer(config)),
    Effect.onExit((exit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        ? Effect.logInfo("Stopped prompt-retrieval", { version: programVersion })
        : Effect.void
    )
  )
}
