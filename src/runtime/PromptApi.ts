import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import {
  type InProcessPrompts,
  makeInProcessPrompts
} from "../adapters/inbound/embedding/InProcessPrompts.ts"
import { makeWebHandler, type WebHandler } from "../adapters/inbound/http/WebHandler.ts"
import { assertReadable, assertSchemaCurrent } from "../adapters/outbound/postgres/schema/SchemaVersion.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import { metricRegistry } from "../application/observability/Instrumentation.ts"
import { makeRepeatingLog } from "../application/observability/RepeatingLog.ts"
import { Unavailable } from "../application/ports/Unavailable.ts"
import { standaloneLayer } from "./layers/ServiceLayers.ts"
import { type PromptApiOptions, type PromptApiSettings, parseOptions } from "./PromptApiOptions.ts"
import * as HostLogger from "./telemetry/HostLogger.ts"
import { formatJson, toLogEntry } from "./telemetry/Logging.ts"

/** The API inside another Node service. */
export interface PromptApi {
  /**
   * Responds to a web-standard `Request`. Serves the whole HTTP API, with the authentication, billing checks and rate
   * limits of the service. The promise never rejects.
   */
  readonly handler: WebHandler
  /** Reads prompts for a caller that the host has authenticated. */
  readonly prompts: InProcessPrompts
  /** Returns the metrics of the process as Prometheus text. Throws an error if the option `metrics` is not true. */
  readonly metrics: () => string
  /** Closes all connections. */
  readonly close: () => Promise<void>
}

/** Logs to `logger`; by default, logs warnings and errors to stderr. Creates no spans, because nothing exports them. */
const makeObservabilityLayer = (logger: PromptApiSettings["logger"]) =>
  Layer.merge(
    logger === undefined
      ? Layer.merge(
          Logger.layer([Logger.withConsoleError(Logger.make((options) => formatJson(toLogEntry(options))))]),
          Layer.succeed(References.MinimumLogLevel, "Warn")
        )
      : HostLogger.layer(logger),
    Layer.succeed(References.TracerEnabled, false)
  )

const checkSchema = Effect.andThen(assertSchemaCurrent, assertReadable)

/**
 * Checks the schema and starts to serve. Fails if PostgreSQL is reachable, but the schema is not current or not
 * readable. If PostgreSQL is unavailable, retries the check in the background until the check succeeds. These retries
 * continue even if the schema is not current, so that the database can be created first and migrated later.
 */
const startServing = Effect.gen(function* () {
  const { markServing } = yield* Lifecycle
  // The first check has a time limit, because a server can accept a connection and never respond.
  const boundedCheck = Effect.timeoutOrElse(checkSchema, {
    duration: "5 seconds",
    orElse: () => Effect.fail(Unavailable)
  })
  const report = makeRepeatingLog((message) => Effect.logError(message))
  const retriedCheck = checkSchema.pipe(
    Effect.catchDefect((defect) =>
      Effect.fail({ _tag: "SchemaUnreadable", message: `the database's schema cannot be read: ${defect}` })
    ),
    // `Database` already logs that PostgreSQL is unavailable.
    Effect.tapError((error) => ("message" in error ? report(error.message) : Effect.void)),
    Effect.retry(Schedule.spaced("500 millis"))
  )
  yield* Effect.andThen(boundedCheck, markServing).pipe(
    Effect.catchTag("Unavailable", () => Effect.forkScoped(Effect.andThen(retriedCheck, markServing)))
  )
})

/** Measures the process if metrics are collected. Returns the function that formats all metrics. */
const startMetrics = Effect.fnUntraced(function* (isCollected: boolean) {
  if (!isCollected) {
    return (): string => {
      throw new Error("Metrics are not collected; set the option metrics to true")
    }
  }
  const [{ measureProcess }, { formatUnsafe }] = yield* Effect.promise(() =>
    Promise.all([import("./telemetry/ProcessMetrics.ts"), import("effect/observability/PrometheusMetrics")])
  )
  yield* measureProcess
  return (): string => formatUnsafe(metricRegistry)
})

/**
 * Starts the API inside another Node service, on a PostgreSQL database with a current schema. The command
 * `prompt-retrieval migrate` updates the schema.
 *
 * Rejects with a `TypeError` that names the invalid or unknown option, or with an `Error` if the schema is not current
 * or its tables are not readable. If PostgreSQL is unavailable, the API still starts. Reads then return 503 until
 * PostgreSQL is reachable and its schema is current.
 *
 * ```ts
 * const api = await createPromptApi({ databaseUrl: "postgres://user:password@host/database" })
 * const response = await api.handler(new Request("http://localhost/api/v1/prompts", { headers: { authorization } }))
 * const { data } = await api.prompts.getResolved({ workspaceId, tier: "team" }, id)
 * await api.close()
 * ```
 */
export const createPromptApi = async (options: PromptApiOptions): Promise<PromptApi> => {
  const settings = parseOptions(options)
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(
      standaloneLayer(settings, { url: settings.databaseUrl }),
      makeObservabilityLayer(settings.logger)
    )
  )
  const close = () => runtime.dispose()
  const start = Effect.gen(function* () {
    yield* startServing
    return {
      handler: yield* makeWebHandler,
      prompts: yield* makeInProcessPrompts,
      metrics: yield* startMetrics(settings.metrics),
      close
    }
  })
  const started = await runtime.runPromiseExit(Scope.provide(start, runtime.scope))
  if (Exit.isSuccess(started)) return started.value
  await close()
  throw Cause.squash(started.cause)
}
