import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { expect, vi } from "vitest"
import { CommandOperations } from "../../../src/adapters/inbound/cli/CommandOperations.ts"
import { runCommandLine } from "../../../src/adapters/inbound/cli/Commands.ts"
import { CommandError } from "../../../src/adapters/inbound/cli/output/CommandError.ts"
import { Stdout } from "../../../src/adapters/inbound/cli/output/Output.ts"
import { readConfig } from "../../../src/runtime/config/Config.ts"
import { commandUseCasesLayer } from "../../../src/runtime/layers/CommandLayers.ts"
import { type CommandResult, run } from "./startService.ts"

/** The URL of a database that cannot be reached. */
const nowhere = "postgres://postgres@127.0.0.1:9/none"

const needsProcess = Effect.fail(new CommandError({ message: "the command needs its own process" }))

/** Composes the operations of the command line as the program does, for the database that the environment selects. */
const makeCommandOperations = (env: Readonly<Record<string, string>>, setOpen: (isOpen: boolean) => void) =>
  Effect.map(readConfig(env), (config): CommandOperations["Service"] => ({
    serve: () => needsProcess,
    migrate: needsProcess,
    schemaStatus: needsProcess,
    openUseCases: (migrate) =>
      Layer.build(commandUseCasesLayer(config, migrate)).pipe(
        Effect.tap(
          Effect.acquireRelease(
            Effect.sync(() => setOpen(true)),
            () => Effect.sync(() => setOpen(false))
          )
        ),
        Effect.mapError(
          (error) => new CommandError({ message: "message" in error ? error.message : "no database" })
        )
      )
  }))

/**
 * Runs a command in this process, because a new process takes much longer. A command with input on stdin runs in a new
 * process. Without `DATABASE_URL`, the command cannot reach a database. Fails if the command prints a result while it is
 * connected to the database, because a slow reader of the output would then keep the connection open.
 */
export const runInProcess = async (
  args: ReadonlyArray<string>,
  variables: Readonly<Record<string, string>> = {},
  input?: string
): Promise<CommandResult> => {
  const env = { DATABASE_URL: nowhere, ...variables }
  if (input !== undefined) return run(args, env, input)
  let isDatabaseOpen = false
  let stdout = ""
  let stderr = ""
  const log = vi.spyOn(console, "error").mockImplementation((text) => {
    stderr += `${text}\n`
  })
  try {
    const code = await Effect.runPromise(
      runCommandLine(args).pipe(
        Effect.provideServiceEffect(
          CommandOperations,
          makeCommandOperations(env, (isOpen) => {
            isDatabaseOpen = isOpen
          })
        ),
        Effect.provideService(Stdout, (output) =>
          Effect.sync(() => {
            expect(isDatabaseOpen).toBe(false)
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

/** Makes the result of a command that prints these lines to stdout. */
export const makeSuccess = (...lines: ReadonlyArray<string>): CommandResult => ({
  code: 0,
  stdout: lines.map((line) => `${line}\n`).join(""),
  stderr: ""
})

/** Makes the result of a command that prints only an error. */
export const makeFailure = (message: string, code = 1): CommandResult => ({
  code,
  stdout: "",
  stderr: `prompt-retrieval: ${message}\n`
})

/**
 * Runs a command with `--json` like `runInProcess`. Expects success and no output on stderr. Returns the parsed JSON.
 */
export const runJson = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  input?: string
  // biome-ignore lint/suspicious/noExplicitAny: the value depends on the command
): Promise<any> => {
  const result = await runInProcess([...args, "--json"], env, input)
  expect(result).toMatchObject({ code: 0, stderr: "" })
  return JSON.parse(result.stdout)
}
