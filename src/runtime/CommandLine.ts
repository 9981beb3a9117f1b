import { readFileSync } from "node:fs"
import { constants } from "node:os"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import { CommandError } from "../adapters/inbound/cli/CommandError.ts"
import { runCommandLine } from "../adapters/inbound/cli/Commands.ts"
import { seedDemoWorkspace } from "../adapters/inbound/cli/Demo.ts"
import { type ServiceConfig, readConfig } from "./Config.ts"
import type { Operations } from "../adapters/inbound/cli/Operations.ts"
import * as EmbeddedChangeFeed from "../adapters/outbound/postgres/pglite/PgliteChangeFeed.ts"
import * as EmbeddedPostgres from "../adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import * as HttpServer from "../adapters/inbound/http/transport/Server.ts"
import { migrate, assertSchemaCurrent } from "../adapters/outbound/postgres/Migrations.ts"
import * as JsonLogger from "./telemetry/JsonLogger.ts"
import * as PrettyLogger from "./telemetry/PrettyLogger.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import { administrationLayer, changeFeedLayer, databaseLayer, serviceLayer } from "../index.ts"

/** What an operator is told of an error: its own words, or that the database is away. */
const orFailure = <A, E extends { readonly _tag: string; readonly message?: string }, R>(
  effect: Effect.Effect<A, E, R>
) =>
  Effect.mapError(
    effect,
    (error) => new CommandError({ message: error.message ?? "the database can't be reached" })
  )

const orDataDirFailure = <A, R>(effect: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.mapError(effect, ({ message }) => new CommandError({ message: `DATA_DIR: ${message}` }))

/** The database for every command but `serve`: an embedded one is shared with whoever serves it. */
const database = Layer.unwrap(
  Effect.gen(function* () {
    const { databaseUrl, dataDir } = yield* readConfig
    return databaseLayer(
      databaseUrl === undefined
        ? yield* orDataDirFailure(EmbeddedPostgres.connect({ dataDir }))
        : { url: databaseUrl }
    )
  })
)

/** The database for `serve`, which alone serves an embedded one, and the feed of its changes. */
const servedDatabase = Effect.fnUntraced(function* ({ databaseUrl, dataDir }: ServiceConfig) {
  if (databaseUrl !== undefined) {
    return Layer.provideMerge(changeFeedLayer, databaseLayer({ url: databaseUrl }))
  }
  const embedded = yield* orDataDirFailure(EmbeddedPostgres.open({ dataDir }))
  return Layer.merge(EmbeddedChangeFeed.layer(embedded), databaseLayer(embedded))
})

/** PostgreSQL may be away at the start: the service listens all the same, and serves once it has migrated. */
const migrateOnceThere = Effect.retry(migrate, {
  while: (error) => error._tag === "Unavailable",
  schedule: Schedule.spaced("500 millis")
})

/** Measures this process, and serves its metrics where the environment says. */
const metrics = Effect.fnUntraced(function* ({ host, metricsPort, otlpEndpoint }: ServiceConfig) {
  if (metricsPort === undefined && otlpEndpoint === undefined) return
  const { measureProcess } = yield* Effect.promise(() => import("./telemetry/ProcessMetrics.ts"))
  yield* measureProcess
  if (metricsPort === undefined) return
  const { serveMetrics } = yield* Effect.promise(() => import("./telemetry/MetricsServer.ts"))
  const { address, port } = yield* orFailure(serveMetrics(host, metricsPort))
  yield* Effect.logInfo(`Metrics on ${urlOf(address, port)}/metrics`)
})

/** Sends traces and metrics where the environment says; without that no span is made. */
const withTelemetry = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.flatMap(readConfig, ({ otlpEndpoint }) =>
    otlpEndpoint === undefined
      ? Effect.provideService(program, References.TracerEnabled, false)
      : Effect.flatMap(
          Effect.promise(() => import("./telemetry/Otlp.ts")),
          ({ layer }) => Effect.provide(program, layer)
        )
  )

const urlOf = (address: string, port: number) =>
  `http://${address.includes(":") ? `[${address}]` : address}:${port}`

const listen = (environment: ServiceConfig) =>
  Effect.mapError(
    HttpServer.serve(environment),
    ({ message }) => new CommandError({ message: `HOST and PORT can't be listened on: ${message}` })
  )

/** Who is told to stop and has not ended after this long, in milliseconds, is ended hard. */
let stopDeadline = 5_000

const serve = Effect.gen(function* () {
  const environment = yield* readConfig
  stopDeadline += environment.shutdownGrace + HttpServer.drainTimeoutMs
  yield* metrics(environment)
  const services = Layer.mergeAll(serviceLayer(environment), administrationLayer).pipe(
    Layer.provideMerge(Layer.merge(yield* servedDatabase(environment), Lifecycle.starting))
  )
  yield* Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    const { address, port } = yield* listen(environment)
    const url = urlOf(address, port)
    yield* Effect.logInfo(`Listening on ${url}`)
    yield* orFailure(migrateOnceThere)
    yield* lifecycle.markServing
    if (environment.databaseUrl === undefined) yield* orFailure(seedDemoWorkspace(url))
    yield* Effect.never
    // The server drains before what it answers from closes.
  }).pipe(Effect.scoped, Effect.provide(services))
}).pipe(Effect.scoped, withTelemetry)

const operations: Operations = {
  serve,
  migrate: orFailure(migrate).pipe(Effect.provide(database)),
  administration: (options) =>
    administrationLayer.pipe(
      Layer.provide(Layer.effectDiscard(orFailure(options.migrate ? migrate : assertSchemaCurrent))),
      Layer.provide(database)
    )
}

/** Log lines go to stderr, results to stdout. */
const withLogging = Effect.fnUntraced(function* <A, E, R>(program: Effect.Effect<A, E, R>) {
  const { logLevel, logFormat } = yield* readConfig
  return yield* program.pipe(
    Effect.provide(logFormat === "json" ? JsonLogger.layer : PrettyLogger.layer),
    Effect.provideService(References.MinimumLogLevel, logLevel)
  )
})

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
const args = process.argv.slice(2)

const endHard = (code: number, why: string): void => {
  console.error(`prompt-retrieval: ${why}`)
  process.exit(code)
}

/** Ctrl+C under npm arrives twice at once: from the terminal and from npm. In milliseconds. */
const sameSignal = 250

/** The first signal stops as it should; a second one, or the deadline, ends the process hard. */
const endHardWhenToldTwice = (): void => {
  let first: number | undefined
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (first === undefined) {
        first = performance.now()
        setTimeout(() => endHard(1, "did not stop in time"), stopDeadline).unref()
      } else if (performance.now() - first > sameSignal) {
        endHard(128 + constants.signals[signal], "told twice to stop")
      }
    })
  }
}

endHardWhenToldTwice()

// That nobody reads the log any more is no reason to stop serving.
process.stderr.on("error", () => {})

NodeRuntime.runMain(
  withLogging(runCommandLine(operations, args, version)).pipe(Effect.provide(NodeServices.layer)),
  {
    disableErrorReporting: true,
    teardown: (exit, onExit) => {
      if (Exit.isSuccess(exit)) return onExit(exit.value as never)
      // Being told to stop is how serving ends well; any other command was broken off.
      if (Cause.hasInterruptsOnly(exit.cause)) return onExit(args[0] === "serve" ? 0 : 130)
      const error = Cause.squash(exit.cause)
      console.error(`prompt-retrieval: ${error instanceof Error ? error.message : String(error)}`)
      onExit(1)
    }
  }
)
