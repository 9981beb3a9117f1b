// This import compiles schemas to functions when the schemas are first used. Compiled schemas need a third less time to
// decode a row and to encode a response. If code generation from strings is disabled, Effect interprets the schemas.
import "effect/schema/SchemaJITCompiler/enable"
import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Struct from "effect/Struct"
import { Address, type AddressSettings } from "../../adapters/inbound/http/Address.ts"
import { Database, type DatabaseOptions } from "../../adapters/outbound/postgres/Database.ts"
import * as PostgresChangeFeed from "../../adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import * as PostgresKeyStore from "../../adapters/outbound/postgres/keys/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import * as InProcessRateLimiter from "../../adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { Admission, type RateLimits } from "../../application/Admission.ts"
import * as CachingKeyStore from "../../application/cache/CachingKeyStore.ts"
import * as CachingPromptRepo from "../../application/cache/CachingPromptRepo.ts"
import { FeedState } from "../../application/cache/FeedState.ts"
import { AcceptedKeys, Outage } from "../../application/cache/Outage.ts"
import { Lifecycle } from "../../application/Lifecycle.ts"
import { Prompts, type ReadGate } from "../../application/Prompts.ts"
import { ChangeFeed } from "../../application/ports/ChangeFeed.ts"
import type { KeyStore } from "../../application/ports/KeyStore.ts"
import type { PromptRepo } from "../../application/ports/PromptRepo.ts"
import { Readiness } from "../../application/ports/Readiness.ts"

// The composition root of the use cases of callers, for `serve` and for embedders. Modules that only some hosts need
// are loaded when their layer is built.

/** A PostgreSQL database. Building the layer never fails, because connections open when they are first needed. */
export const databaseLayer = Database.layer

/** The change notifications of a PostgreSQL server. */
export const changeFeedLayer = PostgresChangeFeed.layer()

/** The address of the API, the rate limits, the server that counts requests, and the maximum age of known responses. */
interface ServiceSettings extends AddressSettings {
  /** The URL of a Redis server. If undefined, each process counts requests alone. */
  readonly redisUrl: Redacted.Redacted | undefined
  readonly rateLimits: RateLimits
  /**
   * How long known responses are served while the database is unreachable, in milliseconds since the last contact. Known
   * responses were current at that contact. By default, no known response is served.
   */
  readonly outageMaxAgeMs?: number
}

/** Selects the adapter that counts requests. */
const rateLimiterLayer = ({ redisUrl }: ServiceSettings) => {
  if (redisUrl === undefined) return InProcessRateLimiter.layer
  const load = async () => {
    const { layer } = await import("../../adapters/outbound/rate-limiter/RedisRateLimiter.ts")
    return layer({ url: Redacted.value(redisUrl) })
  }
  return Layer.unwrap(Effect.promise(load))
}

/** The use cases of callers, on stores of prompts and keys. */
const useCasesLayer = (settings: ServiceSettings) =>
  Layer.merge(Prompts.layer, Admission.layer(settings.rateLimits)).pipe(
    Layer.provide(rateLimiterLayer(settings))
  )

/** The use cases of callers, and the services that `makeWebHandler` needs besides `ChangeFeed` and `Lifecycle`. */
type CallerServices = Prompts | Admission | ReadGate | Address | Readiness | Outage | AcceptedKeys

/** The use cases of callers, on a database and a change feed. */
export const serviceLayer = (
  settings: ServiceSettings
): Layer.Layer<CallerServices | PromptRepo | KeyStore, never, Database | PgClient | ChangeFeed | Lifecycle> =>
  useCasesLayer(settings).pipe(
    Layer.provideMerge(CachingPromptRepo.layer),
    Layer.provide(PostgresPromptRepo.layer),
    Layer.provideMerge(CachingKeyStore.layer),
    Layer.provide(PostgresKeyStore.layer),
    Layer.provideMerge(Outage.layer(settings.outageMaxAgeMs ?? 0)),
    Layer.provideMerge(Database.layerReadiness),
    Layer.provideMerge(Layer.succeed(Address, Struct.pick(settings, ["publicUrl", "basePath"])))
  )

interface StandaloneSettings extends ServiceSettings {
  readonly databaseFeedUrl: Redacted.Redacted | undefined
  readonly databaseMaxConnections?: number
}

/** The use cases of callers with their database, for `serve` and `createPromptApi`. */
export const standaloneLayer = (settings: StandaloneSettings, database: DatabaseOptions) =>
  serviceLayer(settings).pipe(
    Layer.provideMerge(PostgresChangeFeed.layer(settings.databaseFeedUrl)),
    Layer.provideMerge(databaseLayer(database, settings.databaseMaxConnections)),
    Layer.provideMerge(Lifecycle.starting)
  )

/**
 * The use cases of callers and the services that `makeWebHandler` needs, on a `PromptRepo` and a `KeyStore` that a host
 * provides. The stores of a host report no changes, so no response is cached.
 */
export const ownStoresLayer = (
  settings: Pick<ServiceSettings, "redisUrl" | "rateLimits">
): Layer.Layer<CallerServices | ChangeFeed | Lifecycle, never, PromptRepo | KeyStore> =>
  useCasesLayer(settings).pipe(
    Layer.provideMerge(Outage.layerOff),
    Layer.provideMerge(Lifecycle.serving),
    Layer.provideMerge(Layer.succeed(Address, {})),
    Layer.provideMerge(Layer.succeed(Readiness, { check: Effect.void })),
    // This feed is always down, so nothing is cached.
    Layer.provideMerge(Layer.sync(ChangeFeed, () => new FeedState(0)))
  )
