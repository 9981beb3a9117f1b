// Compiles schemas to functions when they are first used, which saves a third of the time to decode a row and to
// encode a response. Where code generation from strings is disabled, schemas are interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { LargeReads } from "../adapters/inbound/http/LargeReads.ts"
import { PublicUrl } from "../adapters/inbound/http/request/PublicUrl.ts"
import * as CachingKeyStore from "../adapters/outbound/caching/CachingKeyStore.ts"
import * as CachingPromptRepo from "../adapters/outbound/caching/CachingPromptRepo.ts"
import * as HostChangeFeed from "../adapters/outbound/host/HostChangeFeed.ts"
import * as HostKeyStore from "../adapters/outbound/host/HostKeyStore.ts"
import * as HostPromptRepo from "../adapters/outbound/host/HostPromptRepo.ts"
import * as MetricObservations from "../adapters/outbound/metrics/MetricObservations.ts"
import { Database, type DatabaseOptions } from "../adapters/outbound/postgres/Database.ts"
import * as PostgresChangeFeed from "../adapters/outbound/postgres/PostgresChangeFeed.ts"
import * as PostgresKeyStore from "../adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresPromptTitles from "../adapters/outbound/postgres/PostgresPromptTitles.ts"
import * as PostgresReadiness from "../adapters/outbound/postgres/PostgresReadiness.ts"
import { PrimaryWatch } from "../adapters/outbound/postgres/replica/PrimaryWatch.ts"
import { divideWithReplicas } from "../adapters/outbound/postgres/replica/ReplicaBudget.ts"
import * as ReplicatedDatabase from "../adapters/outbound/postgres/replica/ReplicatedDatabase.ts"
import * as EmbeddedPostgres from "../adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import * as PgliteChangeFeed from "../adapters/outbound/postgres/pglite/PgliteChangeFeed.ts"
import * as InProcessRateLimiter from "../adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import * as RedisRateLimiter from "../adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { Admission, type RateLimits } from "../application/Admission.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import type { KeyStore } from "../application/ports/KeyStore.ts"
import type { PromptRepo } from "../application/ports/PromptRepo.ts"
import { NamedPrompts } from "../application/NamedPrompts.ts"
import { Readiness } from "../application/ports/Readiness.ts"
import * as Outage from "../application/Outage.ts"
import { Prompts } from "../application/Prompts.ts"
import { WorkspaceRevisions } from "../application/WorkspaceRevisions.ts"
import * as ActorName from "./ActorName.ts"
import { administrationLayer } from "./CommandLayers.ts"
import type { ServiceConfig } from "./Config.ts"
import * as LargeReadThread from "./LargeReadThread.ts"
import type { DatabaseStores, HostStores } from "./PromptApiOptions.ts"
import { describeDatabaseHost } from "./ServerUrl.ts"

// The composition root of the service. `CommandLayers.ts` composes the commands, `testing.ts` the in-memory adapters.

/** A PostgreSQL database. Building it never fails, because connections open when they are first needed. */
export const databaseLayer = Database.layer

/** The change notifications of a PostgreSQL server. */
export const changeFeedLayer = PostgresChangeFeed.layer

/** Limits on callers and the counter that enforces them. */
interface ServiceSettings {
  /** Without Redis, each process counts rate limits itself. */
  readonly redisUrl: Redacted.Redacted | undefined
  readonly rateLimits: RateLimits
  /** How long known responses are served without the database, in milliseconds; none are by default. */
  readonly outageMaxAgeMs?: number
}

/** The use cases of callers, on stores of prompts and keys. */
const useCasesLayer = ({ redisUrl, rateLimits }: ServiceSettings) => {
  const rateLimiter =
    redisUrl === undefined
      ? InProcessRateLimiter.layer
      : RedisRateLimiter.layer({ url: Redacted.value(redisUrl) })
  return Layer.merge(Prompts.layer, Admission.layer(rateLimits)).pipe(Layer.provide(rateLimiter))
}

/** The prompts of a database. */
const databasePromptsLayer = CachingPromptRepo.layer.pipe(Layer.provide(PostgresPromptRepo.layer))

/** The names of the prompts of a database. */
export const namedPromptsLayer = NamedPrompts.layer.pipe(Layer.provide(PostgresPromptTitles.layer))

/** The keys of a database. */
const databaseKeysLayer = CachingKeyStore.layer.pipe(Layer.provide(PostgresKeyStore.layer))

/** The use cases of callers, on a database and a change feed. */
export const serviceLayer = (settings: ServiceSettings) =>
  useCasesLayer(settings).pipe(
    Layer.provide([databasePromptsLayer, databaseKeysLayer]),
    Layer.provideMerge(Outage.layer(settings.outageMaxAgeMs ?? 0)),
    Layer.provideMerge(Layer.merge(PostgresReadiness.layer, MetricObservations.layer))
  )

/** A database for requests: the large-read thread uses it, too. */
const requestDatabaseLayer = (options: DatabaseOptions, maxConnections?: number) =>
  Layer.provideMerge(LargeReadThread.layer(options), databaseLayer(options, maxConnections))

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

/** The database and the change feed of `serve`, which alone serves an embedded database to other processes. */
const servedDatabaseLayer = (config: ServiceConfig) => {
  const { databaseUrl, databaseFeedUrl, databaseReplicaUrls, databaseMaxConnections, dataDir } = config
  if (databaseUrl === undefined)
    return Layer.unwrap(
      Effect.map(EmbeddedPostgres.open({ dataDir }), (embedded) =>
        Layer.merge(PgliteChangeFeed.layer(embedded), requestDatabaseLayer(embedded))
      )
    )
  return databaseReplicaUrls !== undefined
    ? replicatedDatabaseLayer(databaseUrl, config)
    : Layer.provideMerge(
        PostgresChangeFeed.makeLayer(new WorkspaceRevisions(), databaseFeedUrl),
        requestDatabaseLayer({ url: databaseUrl }, databaseMaxConnections)
      )
}

/** Everything that `serve` uses. */
export const serveLayer = (config: ServiceConfig) =>
  Layer.mergeAll(
    serviceLayer(config),
    administrationLayer.pipe(Layer.provide(ActorName.layer(config.actor))),
    Layer.succeed(PublicUrl, config.publicUrl)
  ).pipe(Layer.provideMerge(Layer.merge(servedDatabaseLayer(config), Lifecycle.starting)))

/** Everything that `createPromptApi` uses on a database. A store of the host replaces the one of the database. */
export const databaseApiLayer = (settings: ServiceSettings & DatabaseStores) => {
  const { databaseUrl, databaseFeedUrl, promptRepo, keyStore } = settings
  const database = { url: databaseUrl }
  const revisions = new WorkspaceRevisions()
  const databaseFeed = PostgresChangeFeed.makeLayer(revisions, databaseFeedUrl)
  const hostStores = [promptRepo, keyStore].filter((store) => store !== undefined)
  const prompts: Layer.Layer<PromptRepo, never, Layer.Services<typeof databasePromptsLayer>> = promptRepo ===
  undefined
    ? databasePromptsLayer
    : HostPromptRepo.layer(promptRepo)
  const keys: Layer.Layer<KeyStore, never, Layer.Services<typeof databaseKeysLayer>> = keyStore === undefined
    ? databaseKeysLayer
    : HostKeyStore.layer(keyStore)
  const feed = HostChangeFeed.layer(hostStores, revisions).pipe(Layer.provide(databaseFeed))
  const outage = Outage.layer(settings.outageMaxAgeMs ?? 0).pipe(Layer.provide(feed))
  return useCasesLayer(settings).pipe(
    Layer.provide([prompts, keys]),
    // Responses depend on all stores, the caches of the database's stores on the database alone.
    Layer.provide(databaseFeed),
    Layer.provideMerge(outage),
    Layer.provideMerge(Layer.mergeAll(MetricObservations.layer, PostgresReadiness.layer, feed)),
    Layer.provideMerge(
      Layer.merge(
        promptRepo === undefined ? requestDatabaseLayer(database) : databaseLayer(database),
        Lifecycle.starting
      )
    )
  )
}

/** Everything that `createPromptApi` uses without a database, on stores of the host. */
export const hostApiLayer = (settings: ServiceSettings & HostStores) => {
  const { promptRepo, keyStore } = settings
  const revisions = new WorkspaceRevisions()
  const feed = HostChangeFeed.layer([promptRepo, keyStore], revisions).pipe(
    Layer.provide(HostChangeFeed.localLayer(revisions))
  )
  const readiness = Layer.succeed(Readiness, { check: Effect.void })
  return useCasesLayer(settings).pipe(
    Layer.provide([HostPromptRepo.layer(promptRepo), HostKeyStore.layer(keyStore)]),
    Layer.provideMerge(Outage.layer(settings.outageMaxAgeMs ?? 0)),
    Layer.provideMerge(Layer.mergeAll(MetricObservations.layer, feed, readiness, Lifecycle.serving))
  )
}
