import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as CachedKeyStore from "./adapters/cache/KeyStore.ts"
import * as CachedPromptRepo from "./adapters/cache/PromptRepo.ts"
import { type InProcessPrompts, makeInProcess } from "./adapters/http/InProcess.ts"
import { makeWebHandler, type WebHandler } from "./adapters/http/WebHandler.ts"
import * as MemoryRateLimiter from "./adapters/memory/RateLimiter.ts"
import * as PostgresChangeFeed from "./adapters/postgres/ChangeFeed.ts"
import { Database, type DatabaseOptions } from "./adapters/postgres/Database.ts"
import * as PostgresKeyStore from "./adapters/postgres/KeyStore.ts"
import { requireCurrent } from "./adapters/postgres/Migrations.ts"
import * as PostgresPromptRepo from "./adapters/postgres/PromptRepo.ts"
import * as PostgresReadiness from "./adapters/postgres/Readiness.ts"
import * as PostgresWorkspaceStore from "./adapters/postgres/WorkspaceStore.ts"
import * as RedisRateLimiter from "./adapters/redis/RateLimiter.ts"
import { Administration } from "./application/Administration.ts"
import { Admission, defaultRateLimits, type RateLimits } from "./application/Admission.ts"
import * as Lifecycle from "./application/Lifecycle.ts"

import { Prompts } from "./application/Prompts.ts"

export {
  type HostCaller,
  type InProcessPrompts,
  type ListParameters,
  type Paged,
  type PageParameters,
  PromptApiError,
  type Single
} from "./adapters/http/InProcess.ts"
export type { DatabaseOptions, RateLimits, WebHandler }

/** The database alone: connections come up when they are needed, so building it never fails. */
export const databaseLayer = Database.layer

/** Hears of a PostgreSQL server's changes. */
export const changeFeedLayer = PostgresChangeFeed.layer

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
  const keyStore = CachedKeyStore.layer.pipe(Layer.provide(PostgresKeyStore.layer))
  const promptRepo = CachedPromptRepo.layer.pipe(Layer.provide(PostgresPromptRepo.layer))
  return Layer.mergeAll(Prompts.layer, Admission.layer(rateLimits), PostgresReadiness.layer).pipe(
    Layer.provide([promptRepo, keyStore, rateLimiter])
  )
}

/** The API inside another Node service. */
export interface PromptApi {
  /** The whole HTTP API for any host of web-standard requests: keys, gates and limits as ever. It never rejects. */
  readonly handler: WebHandler
  /** The reads for a caller whom the host has authenticated. */
  readonly prompts: InProcessPrompts
  /** Ends it: connections close. */
  readonly close: () => Promise<void>
}

/**
 * Checks the schema and starts to serve. A reachable PostgreSQL with another schema fails at once. While PostgreSQL is
 * unreachable, reads return 503 and a background check repeats until the schema is right: the database may be created
 * first and migrated later. Each distinct problem of the schema is logged once.
 */
const serveOnceThere = Effect.gen(function* () {
  const lifecycle = yield* Lifecycle.Lifecycle
  const ready = Effect.andThen(
    requireCurrent,
    Effect.sync(() => {
      lifecycle.phase = "serving"
    })
  )
  const logged = new Set<string>()
  const logOnce = (message: string) => {
    if (logged.has(message)) return Effect.void
    logged.add(message)
    return Effect.logError(message)
  }
  yield* Effect.catchTag(ready, "Unavailable", () =>
    ready.pipe(
      Effect.catchDefect((defect) =>
        Effect.fail({ _tag: "SchemaUnreadable", message: `the database's schema can't be read: ${defect}` })
      ),
      // `Database` logs that PostgreSQL is unavailable.
      Effect.tapError((error) => ("message" in error ? logOnce(error.message) : Effect.void)),
      Effect.retry(Schedule.spaced("500 millis")),
      Effect.forkScoped
    )
  )
})

/**
 * The API inside another Node service (DESIGN.md section 9), on a PostgreSQL server whose schema is up to date:
 * `prompt-retrieval migrate` brings it there, and a schema that is not rejects. While PostgreSQL can't be reached, reads
 * return 503; the API serves as soon as PostgreSQL is reachable and its schema is up to date, in whichever order that
 * happens. Warnings and errors are logged to stderr.
 *
 * ```ts
 * const api = await createPromptApi({ databaseUrl: "postgres://user:password@host/database" })
 * const response = await api.handler(new Request("http://localhost/api/v1/prompts", { headers: { authorization } }))
 * const { data } = await api.prompts.getResolved({ workspaceId, tier: "team" }, id)
 * await api.close()
 * ```
 */
export const createPromptApi = async (options: {
  readonly databaseUrl: string
  /** Absent: rate limits are counted in this process. */
  readonly redisUrl?: string | undefined
}): Promise<PromptApi> => {
  const { databaseUrl, redisUrl } = options
  const services = serviceLayer({
    redisUrl: redisUrl === undefined ? undefined : Redacted.make(redisUrl),
    rateLimits: defaultRateLimits
  }).pipe(
    Layer.provideMerge(changeFeedLayer),
    Layer.provideMerge(Layer.merge(databaseLayer({ url: Redacted.make(databaseUrl) }), Lifecycle.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        Logger.layer([Logger.withConsoleError(Logger.formatJson)]),
        Layer.succeed(References.MinimumLogLevel, "Warn"),
        // Nobody reads spans here, so none are made.
        Layer.succeed(References.TracerEnabled, false)
      )
    )
  )
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const start = Effect.gen(function* () {
    const context = yield* Layer.build(services)
    return yield* Effect.gen(function* () {
      yield* serveOnceThere
      return { handler: yield* makeWebHandler, prompts: yield* makeInProcess, close }
    }).pipe(Effect.provideContext(context))
  })
  const started = await Effect.runPromiseExit(Scope.provide(start, scope))
  if (Exit.isSuccess(started)) return started.value
  await close()
  const error = Cause.squash(started.cause)
  throw error instanceof Error ? error : new Error((error as { readonly message: string }).message)
}
