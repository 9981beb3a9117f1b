import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { MountedEndpoint } from "../../adapters/inbound/http/MountedEndpoint.ts"
import * as PostgresChangeFeed from "../../adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import { Lifecycle } from "../../application/Lifecycle.ts"
import type { ServiceConfig } from "../config/Config.ts"
import { databaseLayer, serviceLayer } from "./EmbeddingLayers.ts"

// The composition root of `serve`. Modules that only some configurations need are loaded when their layer is built.

/** The layers that `serve` needs to respond to requests. `Service.ts` adds the use cases of operators. */
export const serveLayer = (config: ServiceConfig) =>
  (config.mcp ? mcpLayer : Layer.succeed(MountedEndpoint, undefined)).pipe(
    Layer.provideMerge(serviceLayer(config)),
    Layer.provideMerge(
      config.databaseUrl === undefined
        ? embeddedDatabaseLayer(config)
        : databaseWithFeedLayer(config.databaseUrl, config)
    ),
    Layer.provideMerge(Lifecycle.starting)
  )

const mcpLayer = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../../adapters/inbound/mcp/HttpEndpoint.ts")),
    ({ makeHttpEndpoint }) => Layer.effect(MountedEndpoint, makeHttpEndpoint)
  )
)

/** The embedded database, which this process runs. */
const embeddedDatabaseLayer = (config: ServiceConfig) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { open } = yield* Effect.promise(
        () => import("../../adapters/outbound/postgres/embedded/EmbeddedPostgres.ts")
      )
      const { url } = yield* open(config)
      return databaseWithFeedLayer(url, config)
    })
  )

const databaseWithFeedLayer = (
  url: Redacted.Redacted,
  { databaseFeedUrl, databaseMaxConnections }: ServiceConfig
) =>
  PostgresChangeFeed.makeLayer(databaseFeedUrl).pipe(
    Layer.provideMerge(databaseLayer({ url }, databaseMaxConnections))
  )
