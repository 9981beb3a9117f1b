import * as Data from "effect/Data"

/** A command failed. The message is written for the operator. */
export class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string }> {}

/** The arguments of a command contradict each other. The message is written for the operator. */
export class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {}
