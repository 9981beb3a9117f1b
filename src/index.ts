import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as MemoryRateLimiter from "./adapters/memory/RateLimiter.ts"
import { Database, type DatabaseOptions } from "./adapters/postgres/Database.ts"
import * as PostgresKeyStore from "./adapters/postgres/KeyStore.ts"
import * as PostgresPromptRepo from "./adapters/postgres/PromptRepo.ts"
import * as PostgresReadiness from "./adapters/postgres/Readiness.ts"
import * as PostgresWorkspaceStore from "./adapters/postgres/WorkspaceStore.ts"
import * as RedisRateLimiter from "./adapters/redis/RateLimiter.ts"
import { Administration } from "./application/Administration.ts"
import { Admission, type RateLimits } from "./application/Admission.ts"
import { Prompts } from "./application/Prompts.ts"

export type { DatabaseOptions, RateLimits }

/** The database alone: connections come up when they are needed, so building it never fails. */
export const databaseLayer = Database.layer

/** What operators do, over a database. */
export const administrationLayer = Administration.layer.pipe(
  Layer.provide([PostgresWorkspaceStore.layer, NodeCrypto.layerSecureRandom])
)

/** What callers do, over a database: the one place where adapters meet ports. Without Redis each process counts for itself. */
export const serviceLayer = (settings: {
  readonly redisUrl: Redacted.Redacted | undefined
  readonly rateLimits: RateLimits
}) => {
  const { redisUrl, rateLimits } = settings
  const rateLimiter =
    redisUrl === undefined
      ? MemoryRateLimiter.layer
      : RedisRateLimiter.layer({ url: Redacted.value(redisUrl) })
  return Layer.mergeAll(Prompts.layer, Admission.layer(rateLimits), PostgresReadiness.layer).pipe(
    Layer.provide([PostgresPromptRepo.layer, PostgresKeyStore.layer, rateLimiter])
  )
}
