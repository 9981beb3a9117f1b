import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { vi } from "vitest"
import { CommandError } from "../../../src/adapters/inbound/cli/output/CommandError.ts"
import { runCommandLine } from "../../../src/adapters/inbound/cli/Commands.ts"
import { CommandRuntime } from "../../../src/adapters/inbound/cli/CommandRuntime.ts"
import { Stdout } from "../../../src/adapters/inbound/cli/output/Output.ts"
import { commandUseCasesLayer } from "../../../src/runtime/layers/CommandLayers.ts"
import { readConfig } from "../../../src/runtime/config/Config.ts"
import { type CommandResult, run } from "../service.ts"

const noDatabase = new CommandError({ message: "no database" })

/** Operations that fail with the message "no database". */
const withoutDatabase: CommandRuntime["Service"] = {
  serve: () => Effect.fail(noDatabase),
  migrate: Effect.fail(noDatabase),
  schemaStatus: Effect.fail(noDatabase),
  openUseCases: () => Effect.fail(noDatabase)
}

/** Operations whose use cases run on the database of the environment. They are composed like those of the program. */
const makeCommandRuntime = (env: Readonly<Record<string, string>>) =>
  Effect.map(readConfig(env), (config): CommandRuntime["Service"] => ({
    ...withoutDatabase,
    openUseCases: (options) =>
      Effect.mapError(Layer.build(commandUseCasesLayer(config, options)), (error) =>
        "message" in error ? new CommandError({ message: error.message }) : noDatabase
      )
  }))

/**
 * Runs a command line, usually in this process, which is much faster than a new process. Without `DATABASE_URL`, a
 * command that needs the database fails with exit code 1 and the message "no database". Commands with input on
 * stdin run in a new process.
 */
export const runInProcess = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  input?: string
): Promise<CommandResult> => {
  if (input !== undefined) return run(args, env, input)
  let stdout = ""
  let stderr = ""
  const log = vi.spyOn(console, "error").mockImplementation((text) => {
    stderr += `${text}\n`
  })
  try {
    const operations =
      env.DATABASE_URL === undefined ? Effect.succeed(withoutDatabase) : makeCommandRuntime(env)
    const code = await Effect.runPromise(
      runCommandLine(args).pipe(
        Effect.provideServiceEffect(CommandRuntime, operations),
        Effect.provideService(Stdout, (output) =>
          Effect.sync(() => {
            stdout += Buffer.from(output)
          })
        ),
        Effect.provide(NodeServices.layer),
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
        Effect.provideService(References.MinimumLogLevel, "None")
      )
    )
    return { code, stdout, stderr }
  } finally {
    log.mockRestore()
  }
}
