import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { PromptTitles } from "../../../../application/ports/PromptTitles.ts"
import { withSpanIfTraced } from "../../../../application/support/Observability.ts"
import { Prompt } from "../../../../domain/Prompt.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { Database } from "../Database.ts"
import { selectTitles } from "./PromptQueries.ts"

const { id, title, updated_at } = Prompt.fields
const decodeTitles = makeRowDecoder(Schema.Struct({ id, title, updated_at }))

/** Provides the titles of prompts in PostgreSQL. Each read runs one statement. */
export const layer: Layer.Layer<PromptTitles, never, Database> = Layer.effect(
  PromptTitles,
  Effect.map(Database, ({ queryPrompts }) =>
    PromptTitles.of({
      listAfter: withSpanIfTraced("PromptTitles.listAfter")((workspace, after) =>
        Effect.map(queryPrompts(selectTitles(workspace, after)), decodeTitles)
      )
    })
  )
)
