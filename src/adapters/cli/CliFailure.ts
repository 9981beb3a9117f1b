import * as Data from "effect/Data"

/** What an operator is told when a command fails: on stderr, without a stack, exit code 1. */
export class CliFailure extends Data.TaggedError("CliFailure")<{ readonly message: string }> {}
