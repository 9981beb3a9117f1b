import { readFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { CommandError } from "../adapters/inbound/cli/CommandError.ts"
import { runCommandLine } from "../adapters/inbound/cli/Commands.ts"
import type { Operations } from "../adapters/inbound/cli/Operations.ts"
import type { ListenError } from "../adapters/inbound/http/transport/Listen.ts"
import { migrate, type SchemaMismatch } from "../adapters/outbound/postgres/Migrations.ts"
import type {
  DataDirectoryBusy,
  DataDirectoryUnusable
} from "../adapters/outbound/postgres/pglite/DataDirectory.ts"
import type { Unavailable } from "../application/ports/Unavailable.ts"
import { readConfig, type ServiceConfig } from "./Config.ts"
import { commandAdministrationLayer, commandDatabaseLayer } from "./Layers.ts"
import { maxDrainMs, serve } from "./Service.ts"
import { installSignalHandlers } from "./Signals.ts"
import type { MetricsListenError } from "./telemetry/MetricsServer.ts"
import { withLogging } from "./telemetry/Telemetry.ts"

/** Every error that an operation of the runtime can fail with. */
type RuntimeError =
  | DataDirectoryBusy
  | DataDirectoryUnusable
  | ListenError
  | MetricsListenError
  | SchemaMismatch
  | Unavailable

/** Converts an error of the runtime into an error with a message for the operator. */
const toCommandError = (error: RuntimeError): CommandError | Unavailable => {
  switch (error._tag) {
    case "DataDirectoryBusy":
    case "DataDirectoryUnusable":
      return new CommandError({ message: `DATA_DIR: ${error.message}` })
    case "ListenError":
      return new CommandError({ message: `cannot listen on HOST and PORT: ${error.message}` })
    case "MetricsListenError":
    case "SchemaMismatch":
      return new CommandError({ message: error.message })
    case "Unavailable":
      return error
  }
}

const makeOperations = (config: ServiceConfig): Operations["Service"] => ({
  serve: Effect.mapError(serve(config), toCommandError),
  migrate: migrate.pipe(Effect.provide(commandDatabaseLayer(config)), Effect.mapError(toCommandError)),
  administration: (options) =>
    commandAdministrationLayer(config, options).pipe(
      Layer.build,
      Effect.mapError(toCommandError),
      Layer.effectContext
    )
})

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

/** How long a command may take to stop, in milliseconds, beyond the time that `serve` takes to drain. */
const stopTimeoutMs = 5_000

const runProgram = Effect.fnUntraced(function* (args: ReadonlyArray<string>, isServe: boolean) {
  const config = yield* readConfig
  installSignalHandlers(isServe ? stopTimeoutMs + maxDrainMs(config) : stopTimeoutMs)
  return yield* runCommandLine(makeOperations(config), args, version).pipe(withLogging(config))
})

/** Exit code of a command that a signal interrupted. */
const interruptedExitCode = 130

/**
 * Runs the command line with its arguments and exits the process. Logs and errors go to stderr, results to stdout. A
 * signal ends `serve` with 0 and any other command with 130.
 */
export const main = (args: ReadonlyArray<string>): void => {
  const isServe = args[0] === "serve"
  // A closed log pipe must not end the service.
  process.stderr.on("error", () => {})
  NodeRuntime.runMain(Effect.provide(runProgram(args, isServe), NodeServices.layer), {
    disableErrorReporting: true,
    teardown: (exit, onExit) => {
      if (Exit.isSuccess(exit)) return onExit(exit.value as number)
      if (Cause.hasInterruptsOnly(exit.cause)) return onExit(isServe ? 0 : interruptedExitCode)
      const error = Cause.squash(exit.cause)
      console.error(`prompt-retrieval: ${error instanceof Error ? error.message : String(error)}`)
      onExit(1)
    }
  })
}
