import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { isSqlError } from "effect/sql/SqlError"
import { isJsonRequested } from "../adapters/inbound/cli/input/CommandTree.ts"
import { CommandError } from "../adapters/inbound/cli/output/CommandError.ts"
import type { CommandRuntime } from "../adapters/inbound/cli/CommandRuntime.ts"
import { formatFailure, writeToStdout } from "../adapters/inbound/cli/output/Output.ts"
import { parseServe, runServe } from "../adapters/inbound/cli/ServeHandler.ts"
import { connectionLimits } from "../adapters/inbound/http/transport/ConnectionLimits.ts"
import type { ListenError } from "../adapters/inbound/http/transport/Server.ts"
import { OutageLogLevel } from "../adapters/outbound/postgres/driver/OutageLogLevel.ts"
import { describeSqlError } from "../adapters/outbound/postgres/driver/SqlErrors.ts"
import type {
  DataDirectoryBusy,
  DataDirectoryUnusable
} from "../adapters/outbound/postgres/embedded/DataDirectory.ts"
import type { EmbeddedUnavailable } from "../adapters/outbound/postgres/embedded/ServerUser.ts"
import type { SchemaMismatch } from "../adapters/outbound/postgres/schema/SchemaVersion.ts"
import { Unavailable } from "../application/ports/Unavailable.ts"
import { toMessage } from "../application/observability/ErrorMessage.ts"
import { programVersion } from "../application/ProgramVersion.ts"
import { environment, readConfig, type ServiceConfig } from "./config/Config.ts"
import { findSimilarNames } from "./config/SimilarNames.ts"
import { installSignalHandlers } from "./Signals.ts"
import type { MetricsListenError } from "./telemetry/MetricsServer.ts"
import { withLogging } from "./telemetry/Telemetry.ts"

type RuntimeError =
  | DataDirectoryBusy
  | DataDirectoryUnusable
  | EmbeddedUnavailable
  | ListenError
  | MetricsListenError
  | SchemaMismatch
  | Unavailable

const toCommandError = (
  error: RuntimeError,
  { databaseUrl, dataDir }: ServiceConfig
): CommandError | Unavailable => {
  switch (error._tag) {
    case "DataDirectoryBusy":
    case "DataDirectoryUnusable":
      return new CommandError({ message: `DATA_DIR: ${error.message}` })
    case "ListenError":
      return new CommandError({ message: `cannot listen on HOST and PORT: ${error.message}` })
    case "MetricsListenError":
      return new CommandError({
        message: `cannot listen on METRICS_HOST and METRICS_PORT: ${error.message}`
      })
    case "EmbeddedUnavailable":
      return new CommandError({ message: error.message })
    case "SchemaMismatch": {
      const embedded = `; DATABASE_URL is not set, so this is the embedded database in ${dataDir}`
      return new CommandError({ message: `${error.message}${databaseUrl === undefined ? embedded : ""}` })
    }
    case "Unavailable":
      return error
  }
}

/** Waits for the next turn of the event loop, so that the logger writes its lines before an error is printed. */
const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Makes the operations of the commands that need the database. */
const makeDatabaseOperations = Effect.fnUntraced(function* (config: ServiceConfig) {
  const [{ commandDatabaseLayer, commandUseCasesLayer }, { migrate, readSchemaStatus }, { limitHeapGrowth }] =
    yield* Effect.promise(() =>
      Promise.all([
        import("./layers/CommandLayers.ts"),
        import("../adapters/outbound/postgres/schema/Migrations.ts"),
        import("./IdleCollection.ts")
      ])
    )
  // Limit the heap, because an import or export of many prompts creates much garbage.
  yield* limitHeapGrowth
  const database = commandDatabaseLayer(config)
  return {
    migrate: Effect.provide(migrate, database),
    schemaStatus: Effect.provide(readSchemaStatus, database),
    useCases: (options: { readonly migrate: boolean }) => commandUseCasesLayer(config, options)
  }
})

/** Fails with the reason why the database is unavailable. */
const explainUnavailable = Effect.fnUntraced(function* ({ databaseUrl }: ServiceConfig) {
  if (databaseUrl === undefined) return yield* Effect.fail(Unavailable)
  const { findConnectionProblem } = yield* Effect.promise(
    () => import("../adapters/outbound/postgres/connection/ConnectionProblem.ts")
  )
  const message = yield* findConnectionProblem(databaseUrl)
  return yield* Effect.fail(message === undefined ? Unavailable : new CommandError({ message }))
})

/** Makes the operations of the runtime. The modules of an operation are imported when a command runs the operation. */
const makeCommandRuntime = (config: ServiceConfig): CommandRuntime["Service"] => {
  const databaseOperations = makeDatabaseOperations(config)
  const explainErrors = <A, R>(operation: Effect.Effect<A, RuntimeError, R>) =>
    operation.pipe(
      Effect.provideService(OutageLogLevel, "Debug"),
      Effect.catch((error) =>
        error._tag === "Unavailable" ? explainUnavailable(config) : Effect.fail(toCommandError(error, config))
      )
    )
  return {
    serve: ({ demo }) =>
      Effect.promise(() => import("./Service.ts")).pipe(
        Effect.flatMap(({ serve }) => serve(config, { demo })),
        Effect.tapError(() => nextTurn),
        Effect.mapError((error) => toCommandError(error, config))
      ),
    migrate: databaseOperations.pipe(
      Effect.flatMap(({ migrate }) => migrate),
      explainErrors
    ),
    schemaStatus: databaseOperations.pipe(
      Effect.flatMap(({ schemaStatus }) => schemaStatus),
      explainErrors
    ),
    useCases: (options) =>
      databaseOperations.pipe(
        Effect.flatMap(({ useCases }) => Layer.build(useCases(options))),
        explainErrors,
        Layer.effectContext
      ),
    writeOutput: writeToStdout
  }
}

/** The longest time that a command may take to stop, in milliseconds. `serve` gets additional time to drain. */
const stopTimeoutMs = 5_000

/** The longest time that `serve` takes to drain after a stop signal, in milliseconds. */
const maxDrainMs = ({ shutdownGraceMs }: ServiceConfig): number =>
  shutdownGraceMs + connectionLimits.drainTimeoutMs

/**
 * Runs a command line and returns its exit code. Loads the parser and the other commands only if `parseServe` cannot
 * parse the arguments.
 */
const runServeOrCommand = Effect.fnUntraced(function* (
  operations: CommandRuntime["Service"],
  args: ReadonlyArray<string>
) {
  const input = parseServe(args)
  if (input !== undefined) return yield* runServe(operations, input)
  const [{ runCommandLine }, NodeServices] = yield* Effect.promise(() =>
    Promise.all([import("../adapters/inbound/cli/Commands.ts"), import("@effect/platform-node/NodeServices")])
  )
  return yield* Effect.provide(runCommandLine(operations, args, programVersion), NodeServices.layer)
})

const runProgram = Effect.fnUntraced(function* (args: ReadonlyArray<string>, isServe: boolean) {
  const config = yield* Effect.provideService(readConfig, ConfigProvider.ConfigProvider, environment)
  installSignalHandlers(isServe ? stopTimeoutMs + maxDrainMs(config) : stopTimeoutMs)
  const warnings = Effect.forEach(findSimilarNames(process.env), (warning) => Effect.logWarning(warning))
  return yield* withLogging(config)(
    Effect.andThen(warnings, runServeOrCommand(makeCommandRuntime(config), args))
  )
})

/**
 * Describes an error that no command expects. For an error of PostgreSQL, the driver's message is replaced, because it
 * does not say why the statement failed.
 */
const describeDefect = (error: unknown): string =>
  isSqlError(error) ? `PostgreSQL rejected a statement: ${describeSqlError(error)}` : toMessage(error)

const interruptedExitCode = 130

/**
 * Runs the command line with its arguments and exits the process. Logs and errors go to stderr, results to stdout. If a
 * signal interrupts a command and the command stops in time, the exit code is 0 for `serve` and 130 for any other
 * command.
 */
export const main = (args: ReadonlyArray<string>): void => {
  const isServe = args[0] === "serve"
  // A closed log pipe must not end the service.
  process.stderr.on("error", () => {})
  NodeRuntime.runMain(runProgram(args, isServe), {
    disableErrorReporting: true,
    teardown: (exit, onExit) => {
      if (Exit.isSuccess(exit)) return onExit(exit.value as number)
      if (Cause.hasInterruptsOnly(exit.cause)) return onExit(isServe ? 0 : interruptedExitCode)
      const message = describeDefect(Cause.squash(exit.cause))
      console.error(formatFailure(isJsonRequested(args), { message, exitCode: 1 }))
      onExit(1)
    }
  })
}
