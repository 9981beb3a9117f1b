import * as Context from "effect/Context"

/** An empty context, with which Effect uses its process-wide registry of metrics. */
export const metricRegistry = Context.empty()
