import * as Effect from "effect/Effect"
import { seedDemoWorkspace } from "../adapters/inbound/cli/Demo.ts"
import * as HttpServer from "../adapters/inbound/http/transport/Server.ts"
import { migrate } from "../adapters/outbound/postgres/Migrations.ts"
import type { ServiceConfig } from "./Config.ts"
import { serveLayer } from "./Layers.ts"
import { isUnavailable, startServing } from "./Startup.ts"
import { startMetrics, withExport } from "./telemetry/Telemetry.ts"
import { formatUrl } from "./Url.ts"

/**
 * Listens, migrates the database, and serves until it is interrupted; then drains. It listens before PostgreSQL is
 * available and serves once the migration succeeds. The embedded database is filled with a demo workspace.
 */
export const serve = (config: ServiceConfig) => {
  // The inner scope drains the server before the services that it uses close.
  const listenAndServe = Effect.gen(function* () {
    const url = formatUrl(yield* HttpServer.serve(config))
    yield* Effect.logInfo(`Listening on ${url}`)
    yield* startServing(migrate, isUnavailable)
    if (config.databaseUrl === undefined) yield* seedDemoWorkspace(url)
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(serveLayer(config)))
  return Effect.andThen(startMetrics(config), listenAndServe).pipe(Effect.scoped, withExport(config))
}

/** The longest time that `serve` takes to drain after a stop signal, in milliseconds. */
export const maxDrainMs = ({ shutdownGrace }: ServiceConfig): number =>
  shutdownGrace + HttpServer.drainTimeoutMs
