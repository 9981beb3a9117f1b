import { setImmediate } from "node:timers/promises"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { CommandOperations } from "../adapters/inbound/cli/CommandOperations.ts"
import { isJsonRequested } from "../adapters/inbound/cli/input/UsageErrors.ts"
import {
  AsJson,
  CommandError,
  reportError,
  unavailableMessage
} from "../adapters/inbound/cli/output/CommandError.ts"
import { connectionLimits } from "../adapters/inbound/http/server/ConnectionLimits.ts"
import { OutageLogLevel } from "../adapters/outbound/postgres/driver/SqlErrors.ts"
import { toMessage } from "../application/ErrorMessage.ts"
import type { Unavailable } from "../application/ports/Unavailable.ts"
import { readConfig, type ServiceConfig } from "./config/Config.ts"
import { findSimilarNames } from "./config/SimilarNames.ts"
import type { makeOperations } from "./layers/CommandLayers.ts"
import { installSignalHandlers } from "./Signals.ts"
import * as Logging from "./telemetry/Logging.ts"

/** An error that stops a command: `Unavailable`, or an error with a message for the operator. */
type RuntimeError = Unavailable | { readonly _tag: string; readonly message: string }

/** The prefixes of error messages, by the tag of the error. A prefix names the environment variable to change. */
const prefixes: Readonly<Record<string, string>> = {
  DataDirectoryBusy: "DATA_DIR: ",
  DataDirectoryUnusable: "DATA_DIR: "
}

/** Converts an error to a `CommandError`. For `Unavailable`, finds the reason why the database is unavailable. */
const toCommandError = Effect.fnUntraced(function* (
  error: RuntimeError,
  { databaseUrl, dataDir }: ServiceConfig
) {
  if ("message" in error) {
    const isEmbedded = error._tag === "SchemaMismatch" && databaseUrl === undefined
    const suffix = `; DATABASE_URL is not set, so this is the embedded database in ${dataDir}`
    const message = `${prefixes[error._tag] ?? ""}${error.message}${isEmbedded ? suffix : ""}`
    return new CommandError({ message })
  }
  const { findConnectionProblem } = yield* Effect.promise(
    () => import("../adapters/outbound/postgres/connection/DatabaseServer.ts")
  )
  const reason = databaseUrl && (yield* findConnectionProblem(databaseUrl))
  return new CommandError({ message: reason ?? unavailableMessage })
})

/** Makes the operations of the runtime. The modules of an operation are imported when a command runs the operation. */
const makeCommandOperations = (config: ServiceConfig): CommandOperations["Service"] => {
  const explainErrors = <A, R>(operation: Effect.Effect<A, RuntimeError, R>) =>
    Effect.catch(operation, (error) =>
      // Waits one event-loop turn, so that the logger writes its lines before the error is printed.
      Effect.andThen(
        Effect.promise(() => setImmediate()),
        Effect.flip(toCommandError(error, config))
      )
    )
  const run = <A, R>(
    select: (operations: ReturnType<typeof makeOperations>) => Effect.Effect<A, RuntimeError, R>
  ) =>
    Effect.promise(() => import("./layers/CommandLayers.ts")).pipe(
      Effect.flatMap(({ makeOperations }) => select(makeOperations(config))),
      Effect.provideService(OutageLogLevel, "Debug"),
      explainErrors
    )
  return {
    serve: (options) =>
      Effect.promise(() => import("./Service.ts")).pipe(
        Effect.flatMap(({ serve }) => serve(config, options)),
        explainErrors
      ),
    migrate: run(({ migrate }) => migrate),
    schemaStatus: run(({ schemaStatus }) => schemaStatus),
    openUseCases: (migrate) => run(({ openUseCases }) => openUseCases(migrate))
  }
}

/**
 * Runs a command line and returns its exit code. `serve` and `serve --demo` load neither the parser nor the modules of
 * other commands, which saves 6 MiB of memory.
 */
const runServeOrCommand = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const [command, flag, ...others] = args
  if (command === "serve" && [undefined, "--demo"].includes(flag) && others.length === 0) {
    const { serve } = yield* CommandOperations
    return yield* serve({ demo: flag !== undefined }).pipe(Effect.as(0), Effect.catch(reportError))
  }
  const [{ runCommandLine }, NodeServices] = yield* Effect.promise(() =>
    Promise.all([import("../adapters/inbound/cli/Commands.ts"), import("@effect/platform-node/NodeServices")])
  )
  return yield* Effect.provide(runCommandLine(args), NodeServices.layer)
})

/** The longest time that a command may take to stop, in milliseconds. `serve` gets extra time to drain. */
const stopTimeoutMs = 5_000

const runProgram = Effect.fnUntraced(function* (args: ReadonlyArray<string>, isServe: boolean) {
  const config = yield* readConfig(process.env)
  const drainMs = isServe ? config.shutdownGraceMs + connectionLimits.drainTimeoutMs : 0
  installSignalHandlers(stopTimeoutMs + drainMs)
  return yield* Effect.forEach(findSimilarNames(process.env), (warning) => Effect.logWarning(warning)).pipe(
    Effect.andThen(runServeOrCommand(args)),
    Effect.provideService(CommandOperations, makeCommandOperations(config)),
    Effect.provide(Logging.layer(config))
  )
})

const interruptedExitCode = 130

/**
 * Runs the command line with its arguments and exits the process. Logs and errors go to stderr, and results go to
 * stdout. If a signal interrupts a command and the command stops in time, the exit code is 0 for `serve` and 130 for
 * any other command.
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
      const error = new CommandError({ message: toMessage(Cause.squash(exit.cause)) })
      onExit(Effect.runSync(Effect.provideService(reportError(error), AsJson, isJsonRequested(args))))
    }
  })
}
