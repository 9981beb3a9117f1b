import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { MountedEndpoint } from "../../adapters/inbound/contract/MountedEndpoint.ts"
import { makeHttpEndpoint } from "../../adapters/inbound/mcp/HttpEndpoint.ts"
import {
  defaultMaxConnections,
  divideWithReplicas
} from "../../adapters/outbound/postgres/connection/ConnectionBudget.ts"
import * as PostgresChangeFeed from "../../adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import * as PostgresPromptTitles from "../../adapters/outbound/postgres/prompts/PostgresPromptTitles.ts"
import * as ReplicatedDatabase from "../../adapters/outbound/postgres/replica/ReplicatedDatabase.ts"
import { Lifecycle } from "../../application/support/Lifecycle.ts"
import { WorkspaceRevisions } from "../../application/freshness/WorkspaceRevisions.ts"
import type { ServiceConfig } from "../config/Config.ts"
import { databaseLayer, serviceLayer } from "./RequestLayers.ts"
import { describeDatabaseHost } from "../config/ServerUrl.ts"

// The composition root of `serve`.

const replicatedDatabaseLayer = (databaseUrl: Redacted.Redacted, config: ServiceConfig) => {
  const { databaseFeedUrl, databaseReplicaUrls = [], databaseMaxConnections } = config
  const budget = divideWithReplicas(databaseMaxConnections, databaseReplicaUrls.length)
  const replicas = databaseReplicaUrls.map((url) => ({
    name: describeDatabaseHost(Redacted.value(url)),
    url
  }))
  return Layer.provideMerge(
    ReplicatedDatabase.layer({ replicas, budget, feedUrl: databaseFeedUrl }),
    databaseLayer({ url: databaseUrl }, budget.primary)
  )
}

const singleDatabaseLayer = (
  databaseUrl: Redacted.Redacted,
  { databaseFeedUrl, databaseMaxConnections }: ServiceConfig
) =>
  Layer.provideMerge(
    PostgresChangeFeed.makeLayer(new WorkspaceRevisions(), databaseFeedUrl),
    databaseLayer({ url: databaseUrl }, databaseMaxConnections)
  )

/** The embedded database, which this process runs. Its modules are loaded only when this layer is built. */
const embeddedDatabaseLayer = (config: ServiceConfig) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { open } = yield* Effect.promise(
        () => import("../../adapters/outbound/postgres/embedded/EmbeddedPostgres.ts")
      )
      const { url } = yield* open(config)
      return singleDatabaseLayer(url, { ...config, databaseMaxConnections: defaultMaxConnections })
    })
  )

const servedDatabaseLayer = (config: ServiceConfig) => {
  const { databaseUrl, databaseReplicaUrls } = config
  if (databaseUrl === undefined) return embeddedDatabaseLayer(config)
  return databaseReplicaUrls !== undefined
    ? replicatedDatabaseLayer(databaseUrl, config)
    : singleDatabaseLayer(databaseUrl, config)
}

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
