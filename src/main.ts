import { enableCompileCache } from "node:module"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import packageJson from "../package.json" with { type: "json" }
import { CliFailure } from "./adapters/cli/CliFailure.ts"
import { runCommandLine } from "./adapters/cli/Commands.ts"
import { offerDemo } from "./adapters/cli/Demo.ts"
import { type Environment, readEnvironment } from "./adapters/cli/Environment.ts"
import type { Operations } from "./adapters/cli/Operations.ts"
import * as EmbeddedPostgres from "./adapters/embedded/EmbeddedPostgres.ts"
import * as HttpServer from "./adapters/http/Server.ts"
import { migrate, requireCurrent } from "./adapters/postgres/Migrations.ts"
import * as Lifecycle from "./application/Lifecycle.ts"
import { administrationLayer, type DatabaseOptions, databaseLayer, serviceLayer } from "./index.ts"

enableCompileCache()

/** What an operator is told of an error: its own words, or that the database is away. */
const orFailure = <A, E extends { readonly _tag: string; readonly message?: string }, R>(
  effect: Effect.Effect<A, E, R>
) =>
  Effect.mapError(
    effect,
    (error) => new CliFailure({ message: error.message ?? "the database can't be reached" })
  )

type OpenEmbedded = typeof EmbeddedPostgres.connect

/** The database that the environment names; without one, the embedded database is opened as given. */
const databaseOf = Effect.fnUntraced(function* ({ databaseUrl, dataDir }: Environment, open: OpenEmbedded) {
  if (databaseUrl !== undefined) return { url: databaseUrl } satisfies DatabaseOptions
  const { socketPath } = yield* orFailure(open({ dataDir }))
  return { socketPath } satisfies DatabaseOptions
})

/** The database for every command but `serve`: an embedded one is shared with whoever serves it. */
const database = Layer.unwrap(
  readEnvironment.pipe(
    Effect.flatMap((environment) => databaseOf(environment, EmbeddedPostgres.connect)),
    Effect.map(databaseLayer)
  )
)

/** PostgreSQL may be away at the start: the service listens all the same, and serves once it has migrated. */
const migrateOnceThere = Effect.retry(migrate, {
  while: (error) => error._tag === "Unavailable",
  schedule: Schedule.spaced("500 millis")
})

const serve = Effect.gen(function* () {
  const environment = yield* readEnvironment
  const options = yield* databaseOf(environment, EmbeddedPostgres.open)
  const services = Layer.mergeAll(serviceLayer(environment), administrationLayer).pipe(
    Layer.provideMerge(Layer.merge(databaseLayer(options), Lifecycle.layer))
  )
  yield* Effect.gen(function* () {
    const lifecycle = yield* Lifecycle.Lifecycle
    const { address, port } = yield* orFailure(HttpServer.serve(environment))
    const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}`
    yield* Effect.logInfo(`Listening on ${url}`)
    yield* orFailure(migrateOnceThere)
    lifecycle.phase = "serving"
    if (environment.databaseUrl === undefined) yield* orFailure(offerDemo(url))
    yield* Effect.never
  }).pipe(Effect.provide(services))
}).pipe(Effect.scoped)

const operations: Operations = {
  serve,
  migrate: orFailure(migrate).pipe(Effect.provide(database)),
  administration: (options) =>
    administrationLayer.pipe(
      Layer.provide(Layer.effectDiscard(orFailure(options.migrate ? migrate : requireCurrent))),
      Layer.provide(database)
    )
}

/** Log lines go to stderr, results to stdout. */
const withLogging = Effect.fnUntraced(function* <A, E, R>(program: Effect.Effect<A, E, R>) {
  const { logLevel, logFormat } = yield* readEnvironment
  return yield* program.pipe(
    Effect.provide(
      Logger.layer([
        logFormat === "json" ? Logger.withConsoleError(Logger.formatJson) : Logger.consolePretty()
      ])
    ),
    Effect.provideService(References.MinimumLogLevel, logLevel),
    Effect.provideService(Logger.LogToStderr, true)
  )
})

const args = process.argv.slice(2)

NodeRuntime.runMain(
  withLogging(runCommandLine(operations, args, packageJson.version)).pipe(Effect.provide(NodeServices.layer)),
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
