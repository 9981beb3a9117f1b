import * as Context from "effect/Context"

/**
 * The person or program that administers, as the audit log names it. Provide it to the layer of a `WorkspaceStore`; the
 * default is `unknown`.
 */
export const Actor = Context.Reference<string>("prompt-retrieval/Actor", { defaultValue: () => "unknown" })
