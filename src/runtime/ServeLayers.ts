import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { LargeReads } from "../adapters/inbound/http/LargeReads.ts"
import { PublicUrl } from "../adapters/inbound/http/request/PublicUrl.ts"
import * as PostgresChangeFeed from "../adapters/outbound/postgres/PostgresChangeFeed.ts"
import { PrimaryWatch } from "../adapters/outbound/postgres/replica/PrimaryWatch.ts"
import { divideWithReplicas } from "../adapters/outbound/postgres/replica/ReplicaBudget.ts"
import * as ReplicatedDatabase from "../adapters/outbound/postgres/replica/ReplicatedDatabase.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import { WorkspaceRevisions } from "../application/WorkspaceRevisions.ts"
import type { ServiceConfig } from "./Config.ts"
import { requestDatabaseLayer, serviceLayer } from "./RequestLayers.ts"
import { describeDatabaseHost } from "./ServerUrl.ts"

// The composition root of `serve`.

/** Runs the large reads of a separate thread, which uses the primary, in order with the reads of replicas. */
const orderedLargeReadsLayer = Layer.effect(
  LargeReads,
  Effect.gen(function* () {
    const largeReads = yield* LargeReads
    const { read: readOnPrimary } = yield* ReplicatedDatabase.PrimaryReads
    return largeReads === undefined
      ? undefined
      : { respond: (read) => readOnPrimary(read.caller.workspaceId, largeReads.respond(read)) }
  })
)

/** A PostgreSQL server with replicas, and its change feed. */
const replicatedDatabaseLayer = (databaseUrl: Redacted.Redacted, config: ServiceConfig) => {
  const { databaseFeedUrl, databaseReplicaUrls = [], databaseMaxConnections } = config
  const revisions = new WorkspaceRevisions()
  const watch = new PrimaryWatch(revisions)
  const budget = divideWithReplicas(databaseMaxConnections, databaseReplicaUrls.length)
  const replicas = databaseReplicaUrls.map((url) => ({
    name: describeDatabaseHost(Redacted.value(url)),
    url
  }))
  return orderedLargeReadsLayer.pipe(
    Layer.provideMerge(ReplicatedDatabase.layer({ replicas, budget, revisions, watch })),
    Layer.provideMerge(PostgresChangeFeed.makeLayer(revisions, databaseFeedUrl, watch)),
    Layer.provideMerge(requestDatabaseLayer({ url: databaseUrl }, budget.primary))
  )
}

/** The embedded database and its change feed. Their modules are loaded only when this layer is built. */
const embeddedDatabaseLayer = (dataDir: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const [{ open }, PgliteChangeFeed] = yield* Effect.promise(() =>
        Promise.all([
          import("../adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"),
          import("../adapters/outbound/postgres/pglite/PgliteChangeFeed.ts")
        ])
      )
      const embedded = yield* open({ dataDir })
      return Layer.merge(PgliteChangeFeed.layer(embedded), requestDatabaseLayer(embedded))
    })
  )

/** The database and the change feed of `serve`, which alone serves an embedded database to other processes. */
const servedDatabaseLayer = (config: ServiceConfig) => {
  const { databaseUrl, databaseFeedUrl, databaseReplicaUrls, databaseMaxConnections, dataDir } = config
  if (databaseUrl === undefined) return embeddedDatabaseLayer(dataDir)
  return databaseReplicaUrls !== undefined
    ? replicatedDatabaseLayer(databaseUrl, config)
    : Layer.provideMerge(
        PostgresChangeFeed.makeLayer(new WorkspaceRevisions(), databaseFeedUrl),
        requestDatabaseLayer({ url: databaseUrl }, databaseMaxConnections)
      )
}

/** The layers that `serve` needs to respond to requests. `Service.ts` adds the MCP endpoint and the use cases of operators. */
export const serveLayer = (config: ServiceConfig) =>
  Layer.merge(serviceLayer(config), Layer.succeed(PublicUrl, config.publicUrl)).pipe(
    Layer.provideMerge(Layer.merge(servedDatabaseLayer(config), Lifecycle.starting))
  )
