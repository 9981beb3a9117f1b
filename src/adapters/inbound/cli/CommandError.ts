import * as Data from "effect/Data"

/** What an operator is told when a command fails: on stderr, without a stack, exit code 1. */
export class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string }> {}

/** A command that was given what makes no sense together: told like a failure, exit code 2. */
export class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {}
