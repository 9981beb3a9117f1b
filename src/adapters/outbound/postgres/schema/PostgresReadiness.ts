import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Readiness } from "../../../../application/ports/Readiness.ts"
import { Database } from "../Database.ts"

/** Checks readiness with a query that a replica may run. */
export const layer: Layer.Layer<Readiness, never, Database> = Layer.effect(
  Readiness,
  Effect.map(Database, ({ queryPrompts }) => ({
    check: Effect.asVoid(queryPrompts({ text: "select 1", params: [], expectedRows: 1 }))
  }))
)
