import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { PlatformError } from "effect/PlatformError"
import { toMessage } from "../../../../application/ErrorMessage.ts"

/** An error that ends a command with exit code 1. The message is for the operator. */
export class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string }> {
  readonly exitCode: number = 1
}

/** The arguments of a command are wrong, or contradict each other. */
export class UsageError extends CommandError {
  override readonly exitCode = 2
}

/**
 * An error that ends a command after the command has printed its result. The exit code tells scripts about the result.
 */
export class ResultExit extends Data.TaggedError("ResultExit") {
  readonly exitCode = 2
}

export const unavailableMessage = "the database cannot be reached or did not respond in time"

/** Returns the message of the file system's error without the prefix that `PlatformError` adds. */
const toReason = (error: unknown): string =>
  toMessage(error instanceof PlatformError ? (error.reason.cause ?? error) : error)

export const makeReadError = (path: string, error: unknown): CommandError =>
  new CommandError({ message: `cannot read ${path}: ${toReason(error)}` })

export const makeWriteError = (target: string, error: unknown): CommandError =>
  new CommandError({ message: `cannot write ${target}: ${toReason(error)}` })

/** True if the command prints its result, its warnings and its error as JSON. */
export const AsJson = Context.Reference<boolean>("prompt-retrieval/adapters/inbound/cli/output/AsJson", {
  defaultValue: () => false
})

/** Prints a line to stderr, as text or as JSON. */
const printToStderr = (text: string, json: unknown): Effect.Effect<void> =>
  Effect.flatMap(AsJson, (asJson) =>
    Console.error(asJson ? JSON.stringify(json) : `prompt-retrieval: ${text}`)
  )

export const warn = (message: string): Effect.Effect<void> =>
  printToStderr(`warning: ${message}`, { warning: { message } })

/** Prints an error to stderr. Returns the exit code of the error. */
export const reportError = ({ message, exitCode }: CommandError): Effect.Effect<number> =>
  Effect.as(printToStderr(message, { error: { message, exit_code: exitCode } }), exitCode)
