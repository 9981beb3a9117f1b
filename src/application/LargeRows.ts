import * as Context from "effect/Context"

/** Rows that hold more than this, in bytes, are large: a read of such rows blocks the event loop for too long. */
export const largeBytes = 256 * 1024

/**
 * What a repository does about large rows:
 *
 * - `read`: reads them once they turn out to be large;
 * - `leave`: dies with `LargeRows` once they turn out to be large, so that the caller can repeat the read elsewhere;
 * - `expect`: reads all rows as large ones, in one step.
 */
export const LargeRowPolicy = Context.Reference<"read" | "leave" | "expect">(
  "prompt-retrieval/LargeRowPolicy",
  {
    defaultValue: () => "read"
  }
)

/** A read left large rows. A defect and not an error: nobody gets it who has not set `LargeRowPolicy` to `leave`. */
export class LargeRows {
  readonly _tag = "LargeRows"
}
