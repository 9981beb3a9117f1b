import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { seedDemoWorkspace } from "../adapters/inbound/cli/Demo.ts"
import * as HttpServer from "../adapters/inbound/http/transport/Server.ts"
import { migrate } from "../adapters/outbound/postgres/Migrations.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import type { ServiceConfig } from "./Config.ts"
import { administrationLayer, serviceLayer, servedDatabaseLayer } from "./Layers.ts"
import { isUnavailable, startServing } from "./Startup.ts"
import { startMetrics, withExport } from "./telemetry/Telemetry.ts"
import { formatUrl } from "./Url.ts"

/**
 * Listens, migrates the database, and serves until it is interrupted; then drains. It listens before PostgreSQL is
 * available and serves once the migration succeeds. The embedded database is filled with a demo workspace.
 */
export const serve = (config: ServiceConfig) => {
  const services = Layer.merge(serviceLayer(config), administrationLayer).pipe(
    Layer.provideMerge(Layer.merge(servedDatabaseLayer(config), Lifecycle.starting))
  )
  // The inner scope drains the server before the services that it uses close.
  const listenAndServe = Effect.gen(function* () {
    const url = formatUrl(yield* HttpServer.serve(config))
    yield* Effect.logInfo(`Listening on ${url}`)
    yield* startServing(migrate, isUnavailable)
    if (config.databaseUrl === undefined) yield* seedDemoWorkspace(url)
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(services))
  return Effect.andThen(startMetrics(config), listenAndServe).pipe(Effect.scoped, withExport(config))
}

/** The longest time that `serve` takes to drain after a stop signal, in milliseconds. */
export const maxDrainMs = ({ shutdownGrace }: ServiceConfig): number =>
  shutdownGrace + HttpServer.drainTimeoutMs
