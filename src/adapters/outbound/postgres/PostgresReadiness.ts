import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Readiness } from "../../../application/ports/Readiness.ts"
import { Database } from "./Database.ts"

/** Whether PostgreSQL answers a read. */
export const layer: Layer.Layer<Readiness, never, Database> = Layer.effect(
  Readiness,
  Effect.map(Database, ({ queryPrompts: read }) => ({
    check: Effect.asVoid(read({ text: "select 1", params: [] }))
  }))
)
