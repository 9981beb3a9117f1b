import * as Context from "effect/Context"
import * as Data from "effect/Data"

/** Rows that hold more than this together, in bytes, are large: reading them blocks an event loop for too long. */
export const largeBytes = 256 * 1024

/**
 * How a repository treats large rows:
 *
 * - `inline`: reads them once they turn out to be large;
 * - `defer`: dies with `LargeRowsDeferred` once they turn out to be large, so that the caller can repeat the read elsewhere;
 * - `expect`: reads all rows as if they were large, which takes one statement.
 */
export const LargeRowPolicy = Context.Reference<"inline" | "defer" | "expect">(
  "prompt-retrieval/LargeRowPolicy",
  { defaultValue: () => "inline" }
)

/** Thrown as a defect by a read that found large rows under the policy `defer`. No other policy causes it. */
export class LargeRowsDeferred extends Data.TaggedClass("LargeRowsDeferred") {}
