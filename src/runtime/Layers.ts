// Compiles schemas to functions when they are first used, which saves a third of the time to decode a row and to encode a
// response. Where code generation from strings is disabled, schemas are interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as CachingKeyStore from "../adapters/outbound/caching/CachingKeyStore.ts"
import * as CachingPromptRepo from "../adapters/outbound/caching/CachingPromptRepo.ts"
import * as MetricObservations from "../adapters/outbound/metrics/MetricObservations.ts"
import { Database, type DatabaseOptions } from "../adapters/outbound/postgres/Database.ts"
import { assertSchemaCurrent, migrate } from "../adapters/outbound/postgres/Migrations.ts"
import * as PostgresChangeFeed from "../adapters/outbound/postgres/PostgresChangeFeed.ts"
import * as PostgresKeyStore from "../adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresReadiness from "../adapters/outbound/postgres/PostgresReadiness.ts"
import * as PostgresWorkspaceStore from "../adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import * as EmbeddedPostgres from "../adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import * as PgliteChangeFeed from "../adapters/outbound/postgres/pglite/PgliteChangeFeed.ts"
import * as InProcessRateLimiter from "../adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import * as RedisRateLimiter from "../adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { Administration } from "../application/Administration.ts"
import { Admission, defaultRateLimits, type RateLimits } from "../application/Admission.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import { Prompts } from "../application/Prompts.ts"
import type { ServiceConfig } from "./Config.ts"
import * as LargeReadThread from "./LargeReadThread.ts"

// The composition root: the only module that connects adapters to ports.

/** A PostgreSQL database. Building it never fails, because connections open when they are first needed. */
export const databaseLayer = Database.layer

/** The change notifications of a PostgreSQL server. */
export const changeFeedLayer = PostgresChangeFeed.layer

/** The use cases of operators, on a database. */
export const administrationLayer = Administration.layer.pipe(
  Layer.provide([PostgresWorkspaceStore.layer, NodeCrypto.layerSecureRandom])
)

/** The use cases of callers, on a database and a change feed. Without Redis, each process counts rate limits itself. */
export const serviceLayer = (settings: {
  readonly redisUrl: Redacted.Redacted | undefined
  readonly rateLimits: RateLimits
}) => {
  const { redisUrl, rateLimits } = settings
  const rateLimiter =
    redisUrl === undefined
      ? InProcessRateLimiter.layer
      : RedisRateLimiter.layer({ url: Redacted.value(redisUrl) })
  const keyStore = CachingKeyStore.layer.pipe(Layer.provide(PostgresKeyStore.layer))
  const promptRepo = CachingPromptRepo.layer.pipe(Layer.provide(PostgresPromptRepo.layer))
  return Layer.mergeAll(Prompts.layer, Admission.layer(rateLimits), PostgresReadiness.layer).pipe(
    Layer.provide([promptRepo, keyStore, rateLimiter]),
    Layer.provideMerge(MetricObservations.layer)
  )
}

/** A database for requests: large reads use it from a separate thread. */
const requestDatabaseLayer = (options: DatabaseOptions) =>
  Layer.merge(databaseLayer(options), LargeReadThread.layer(options))

/** The database and the change feed of `serve`, which alone serves an embedded database to other processes. */
const servedDatabaseLayer = ({ databaseUrl, dataDir }: ServiceConfig) =>
  databaseUrl !== undefined
    ? Layer.provideMerge(changeFeedLayer, requestDatabaseLayer({ url: databaseUrl }))
    : Layer.unwrap(
        Effect.map(EmbeddedPostgres.open({ dataDir }), (embedded) =>
          Layer.merge(PgliteChangeFeed.layer(embedded), requestDatabaseLayer(embedded))
        )
      )

/** Everything that `serve` uses. */
export const serveLayer = (config: ServiceConfig) =>
  Layer.merge(serviceLayer(config), administrationLayer).pipe(
    Layer.provideMerge(Layer.merge(servedDatabaseLayer(config), Lifecycle.starting))
  )

/** Everything that `createPromptApi` uses. */
export const promptApiLayer = (options: {
  readonly databaseUrl: Redacted.Redacted
  readonly redisUrl: Redacted.Redacted | undefined
}) =>
  serviceLayer({ redisUrl: options.redisUrl, rateLimits: defaultRateLimits }).pipe(
    Layer.provideMerge(changeFeedLayer),
    Layer.provideMerge(Layer.merge(requestDatabaseLayer({ url: options.databaseUrl }), Lifecycle.starting))
  )

/** The database of a command. An embedded database is shared with the process that serves it, if any. */
export const commandDatabaseLayer = ({ databaseUrl, dataDir }: ServiceConfig) =>
  databaseUrl !== undefined
    ? databaseLayer({ url: databaseUrl })
    : Layer.unwrap(Effect.map(EmbeddedPostgres.connect({ dataDir }), databaseLayer))

/** The administration of a command. Fails if the schema is not current; with `migrate`, brings it up to date first. */
export const commandAdministrationLayer = (config: ServiceConfig, options: { readonly migrate: boolean }) =>
  administrationLayer.pipe(
    Layer.provide(Layer.effectDiscard(options.migrate ? migrate : assertSchemaCurrent)),
    Layer.provide(commandDatabaseLayer(config))
  )
