import * as Context from "effect/Context"

/**
 * The level at which it is logged that PostgreSQL is unavailable. A program that reports this error itself uses
 * `Debug`, so that the reason is not printed twice.
 */
export const OutageLogLevel = Context.Reference<"Warn" | "Debug">("prompt-retrieval/OutageLogLevel", {
  defaultValue: () => "Warn"
})
