import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { MountedEndpoint } from "../../adapters/inbound/http/MountedEndpoint.ts"
import { makeHttpEndpoint } from "../../adapters/inbound/mcp/HttpEndpoint.ts"
import { defaultMaxConnections } from "../../adapters/outbound/postgres/connection/ConnectionBudget.ts"
import * as PostgresChangeFeed from "../../adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import * as PostgresPromptTitles from "../../adapters/outbound/postgres/prompts/PostgresPromptTitles.ts"
import { Lifecycle } from "../../application/Lifecycle.ts"
import type { ServiceConfig } from "../config/Config.ts"
import { databaseLayer, serviceLayer } from "./RequestLayers.ts"

// The composition root of `serve`.

const databaseWithFeedLayer = (
  url: Redacted.Redacted,
  { databaseFeedUrl, databaseMaxConnections }: ServiceConfig
) =>
  Layer.provideMerge(
    PostgresChangeFeed.makeLayer(databaseFeedUrl),
    databaseLayer({ url }, databaseMaxConnections)
  )

/** The embedded database, which this process runs. Its modules are loaded only when this layer is built. */
const embeddedDatabaseLayer = (config: ServiceConfig) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { open } = yield* Effect.promise(
        () => import("../../adapters/outbound/postgres/embedded/EmbeddedPostgres.ts")
      )
      const { url } = yield* open(config)
      return databaseWithFeedLayer(url, { ...config, databaseMaxConnections: defaultMaxConnections })
    })
  )

const servedDatabaseLayer = (config: ServiceConfig) =>
  config.databaseUrl === undefined
    ? embeddedDatabaseLayer(config)
    : databaseWithFeedLayer(config.databaseUrl, config)

const makeMcpEndpointLayer = (publicUrl: string | undefined) => {
  const origin = publicUrl === undefined ? undefined : new URL(publicUrl).origin
  return Layer.effect(
    MountedEndpoint,
    Effect.map(makeHttpEndpoint(origin), (respond) => ({ path: "/mcp", respond }))
  ).pipe(Layer.provide(PostgresPromptTitles.layer))
}

/** The layers that `serve` needs to respond to requests. `Service.ts` adds the use cases of operators. */
export const serveLayer = (config: ServiceConfig) =>
  (config.mcp ? makeMcpEndpointLayer(config.publicUrl) : Layer.succeed(MountedEndpoint, undefined)).pipe(
    Layer.provideMerge(serviceLayer(config)),
    Layer.provideMerge(Layer.merge(servedDatabaseLayer(config), Lifecycle.starting))
  )
