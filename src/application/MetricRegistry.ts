import * as Context from "effect/Context"

/** The process-wide registry of metrics, which an empty context falls back to. */
export const metricRegistry = Context.empty()
