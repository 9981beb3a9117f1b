import * as Data from "effect/Data"

/** Ends a command with a nonzero exit code after it has printed its result. */
export class ExitCode extends Data.TaggedError("ExitCode")<{ readonly exitCode: number }> {}
