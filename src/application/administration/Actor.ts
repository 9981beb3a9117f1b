import * as Context from "effect/Context"

/** The person or program that administers, as the audit log names it. */
export class Actor extends Context.Service<Actor, string>()("prompt-retrieval/Actor") {}
