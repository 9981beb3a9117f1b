import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Unavailable } from "./Unavailable.ts"

/** Port: succeeds if the database answers a query right now. */
export class Readiness extends Context.Service<
  Readiness,
  { readonly check: Effect.Effect<void, Unavailable> }
>()("prompt-retrieval/Readiness") {}
