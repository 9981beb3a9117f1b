import * as Context from "effect/Context"

/**
 * The path below which a host mounts this API, such as `/prompts`, without a trailing slash; empty if the API is
 * mounted at the root.
 */
export const BasePath = Context.Reference<string>("prompt-retrieval/BasePath", { defaultValue: () => "" })
