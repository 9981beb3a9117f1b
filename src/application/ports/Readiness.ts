import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Unavailable } from "./Unavailable.ts"

/** Port: checks that the database responds to a query. */
export class Readiness extends Context.Service<
  Readiness,
  { readonly check: Effect.Effect<void, Unavailable> }
>()("prompt-retrieval/application/ports/Readiness") {}
