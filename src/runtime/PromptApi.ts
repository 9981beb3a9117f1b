import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import {
  type InProcessPrompts,
  makeInProcessPrompts
} from "../adapters/inbound/embedding/InProcessPrompts.ts"
import { makeWebHandler, type WebHandler } from "../adapters/inbound/http/transport/WebHandler.ts"
import { assertSchemaCurrent } from "../adapters/outbound/postgres/Migrations.ts"
import { promptApiLayer } from "./Layers.ts"
import { startServing } from "./Startup.ts"
import { formatJsonLine } from "./telemetry/JsonLogger.ts"

/** The API inside another Node service. */
export interface PromptApi {
  /**
   * The whole HTTP API for any host of web-standard requests, with the same authentication, billing checks and rate
   * limits as the service. It never rejects.
   */
  readonly handler: WebHandler
  /** The reads for a caller whom the host has authenticated. */
  readonly prompts: InProcessPrompts
  /** Closes all connections. */
  readonly close: () => Promise<void>
}

/** Warnings and errors go to stderr as JSON lines; spans are not created, because nothing exports them. */
const observabilityLayer = Layer.mergeAll(
  Logger.layer([Logger.withConsoleError(formatJsonLine)]),
  Layer.succeed(References.MinimumLogLevel, "Warn"),
  Layer.succeed(References.TracerEnabled, false)
)

/** Checks the schema, and logs each distinct problem once. `Database` logs that PostgreSQL is unavailable. */
const makeLoggedSchemaCheck = () => {
  const logged = new Set<string>()
  return assertSchemaCurrent.pipe(
    Effect.catchDefect((defect) =>
      Effect.fail({ _tag: "SchemaUnreadable", message: `the database's schema cannot be read: ${defect}` })
    ),
    Effect.tapError((error) => {
      if (!("message" in error) || logged.has(error.message)) return Effect.void
      logged.add(error.message)
      return Effect.logError(error.message)
    })
  )
}

/**
 * Checks the schema and starts to serve. Fails if PostgreSQL is reachable and the schema is not current. If PostgreSQL
 * is unavailable, the check repeats in the background until it succeeds, even while the schema is not current, so that
 * the database may be created first and migrated later.
 */
const startServingOrRetry = Effect.catchTag(
  startServing(assertSchemaCurrent, () => false),
  "Unavailable",
  () => Effect.forkScoped(startServing(makeLoggedSchemaCheck(), () => true))
)

/**
 * Starts the API inside another Node service, on a PostgreSQL server whose schema is current: `prompt-retrieval migrate`
 * updates the schema. Rejects if the schema is not current. While PostgreSQL is unavailable, reads return 503; the API serves
 * as soon as PostgreSQL is reachable and its schema is current. Warnings and errors are logged to stderr.
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
  /** Without it, rate limits are counted in this process. */
  readonly redisUrl?: string | undefined
}): Promise<PromptApi> => {
  const { databaseUrl, redisUrl } = options
  const services = promptApiLayer({
    databaseUrl: Redacted.make(databaseUrl),
    redisUrl: redisUrl === undefined ? undefined : Redacted.make(redisUrl)
  }).pipe(Layer.provideMerge(observabilityLayer))
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const start = Effect.gen(function* () {
    const context = yield* Layer.build(services)
    return yield* Effect.gen(function* () {
      yield* startServingOrRetry
      return { handler: yield* makeWebHandler, prompts: yield* makeInProcessPrompts, close }
    }).pipe(Effect.provideContext(context))
  })
  const started = await Effect.runPromiseExit(Scope.provide(start, scope))
  if (Exit.isSuccess(started)) return started.value
  await close()
  const error = Cause.squash(started.cause)
  throw error instanceof Error ? error : new Error((error as { readonly message: string }).message)
}
