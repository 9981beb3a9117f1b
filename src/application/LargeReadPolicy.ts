import * as Context from "effect/Context"
import * as Data from "effect/Data"

/** A read of more than this, in bytes, is large: it would block an event loop for too long. */
export const largeBytes = 256 * 1024

/**
 * How reads that turn out to be large are treated:
 *
 * - `inline`: they are completed;
 * - `defer`: they die with `LargeReadDeferred`, so that the caller can repeat them elsewhere;
 * - `expect`: all reads are treated as large from the start, which takes one statement.
 */
export const LargeReadPolicy = Context.Reference<"inline" | "defer" | "expect">(
  "prompt-retrieval/LargeReadPolicy",
  { defaultValue: () => "inline" }
)

/** Thrown as a defect by a large read under the policy `defer`. No other policy causes it. */
export class LargeReadDeferred extends Data.TaggedClass("LargeReadDeferred") {}
