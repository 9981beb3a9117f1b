import * as Context from "effect/Context"

/** The name of the person or program that makes administrative changes, for the audit log. */
export class Actor extends Context.Service<Actor, string>()("prompt-retrieval/Actor") {}
