// This import compiles schemas to functions when they are first used. This saves a third of the time to decode a row
// and to encode a response. Where code generation from strings is disabled, schemas are interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type AddressSettings, addressLayer } from "../../adapters/inbound/http/request/PublicUrl.ts"
import * as CachingKeyStore from "../../application/cache/CachingKeyStore.ts"
import * as CachingPromptRepo from "../../application/cache/CachingPromptRepo.ts"
import { Database, readinessLayer } from "../../adapters/outbound/postgres/Database.ts"
import * as PostgresChangeFeed from "../../adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import * as PostgresKeyStore from "../../adapters/outbound/postgres/keys/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import * as InProcessRateLimiter from "../../adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import * as RedisRateLimiter from "../../adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { Admission, type RateLimits } from "../../application/access/Admission.ts"
import { Lifecycle } from "../../application/Lifecycle.ts"
import * as Outage from "../../application/cache/Outage.ts"
import { ChangeFeed } from "../../application/ports/ChangeFeed.ts"
import { Readiness } from "../../application/ports/Readiness.ts"
import { Prompts } from "../../application/reading/Prompts.ts"

// The layers that `ServeLayers.ts` and `PromptApi.ts` share, and layers that `src/index.ts` exports. `CommandLayers.ts`
// composes the commands of operators, and `testing.ts` the in-memory adapters.

/** A PostgreSQL database. Building the layer never fails, because connections open when they are first needed. */
export const databaseLayer = Database.layer

/** The change notifications of a PostgreSQL server. */
export const changeFeedLayer = PostgresChangeFeed.makeLayer()

/**
 * The address of the API, the rate limits, the server that counts requests, and the use of known responses in an
 * outage.
 */
export interface ServiceSettings extends AddressSettings {
  /** The URL of a Redis server. If undefined, each process counts rate limits alone. */
  readonly redisUrl: Redacted.Redacted | undefined
  readonly rateLimits: RateLimits
  /**
   * How long known responses are served while the database is unreachable, in milliseconds since the last contact. Known
   * responses were current at that contact. By default, no known response is served.
   */
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

const databasePromptsLayer = CachingPromptRepo.layer.pipe(Layer.provide(PostgresPromptRepo.layer))

const databaseKeysLayer = CachingKeyStore.layer.pipe(Layer.provide(PostgresKeyStore.layer))

/** The use cases of callers, on a database and a change feed. */
export const serviceLayer = (settings: ServiceSettings) =>
  useCasesLayer(settings).pipe(
    Layer.provide(databasePromptsLayer),
    Layer.provideMerge(databaseKeysLayer),
    Layer.provideMerge(Outage.layer(settings.outageMaxAgeMs ?? 0)),
    Layer.provideMerge(Layer.merge(readinessLayer, addressLayer(settings)))
  )

/**
 * The use cases of callers and the services that `makeWebHandler` needs, on a `PromptRepo` and a `KeyStore` that a host
 * provides. Changes in these stores are not reported, so no response is cached.
 */
export const ownStoresLayer = (settings: Pick<ServiceSettings, "redisUrl" | "rateLimits">) =>
  useCasesLayer(settings).pipe(
    Layer.provideMerge(Outage.offLayer),
    Layer.provideMerge(
      Layer.mergeAll(
        Lifecycle.serving,
        addressLayer({}),
        Layer.succeed(Readiness, { check: Effect.void }),
        Layer.succeed(ChangeFeed, {
          revision: () => undefined,
          revisionOf: () => undefined,
          lastContact: () => undefined
        })
      )
    )
  )
