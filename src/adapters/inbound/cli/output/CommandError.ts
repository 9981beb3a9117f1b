import * as Data from "effect/Data"
import { toMessage } from "../../../../application/observability/ErrorMessage.ts"

/** A command failed. The message is written for the operator. */
export class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string }> {}

/** The arguments of a command are wrong, or contradict each other. The message is written for the operator. */
export class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {}

export const makeReadError = (path: string, error: unknown): CommandError =>
  new CommandError({ message: `cannot read ${path}: ${toMessage(error)}` })

export const makeWriteError = (target: string, error: unknown): CommandError =>
  new CommandError({ message: `cannot write ${target}: ${toMessage(error)}` })

/** Ends a command with a nonzero exit code after the command has printed its result. */
export class ExitCode extends Data.TaggedError("ExitCode")<{ readonly exitCode: number }> {}
