import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { CommandInput } from "./output/ExitError.ts"
import { handle } from "./CommandHandler.ts"
import { CommandRuntime } from "./CommandRuntime.ts"
import { formatFailure } from "./output/Output.ts"

export interface ServeInput extends CommandInput {
  readonly demo: boolean
}

export const handleServe = handle((input: ServeInput) =>
  Effect.flatMap(CommandRuntime, ({ serve }) => serve(input))
)

/** Returns the options of the command lines `serve` and `serve --demo`; `undefined` for any other command line. */
export const parseServe = (args: ReadonlyArray<string>): ServeInput | undefined => {
  const line = args.join(" ")
  return line === "serve" || line === "serve --demo" ? { demo: args.length > 1 } : undefined
}

/**
 * Runs `serve` like `runCommandLine`, and returns the exit code. Does not load the parser or the modules of the other
 * commands: loading them takes 30 ms and 4 MiB.
 */
export const runServe = (runtime: CommandRuntime["Service"], input: ServeInput) =>
  handleServe(input).pipe(
    Effect.as(0),
    Effect.catch((failure) => Effect.as(Console.error(formatFailure(false, failure)), failure.exitCode)),
    Effect.provideService(CommandRuntime, runtime)
  )
