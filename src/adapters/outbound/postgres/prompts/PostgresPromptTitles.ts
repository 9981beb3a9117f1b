import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { maxTitlesPerRead, PromptTitles } from "../../../../application/ports/PromptTitles.ts"
import { withSpanIfTraced } from "../../../../application/observability/Instrumentation.ts"
import { Prompt, type PromptTitle } from "../../../../domain/Prompt.ts"
import { maxSlugSourceLength } from "../../../../domain/PromptNames.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeStatement, type Statement } from "../driver/Query.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { Database } from "../Database.ts"

/** Selects the titles that follow `after` in the order of the list, truncated like `truncateTitle`. */
export const selectTitles = (
  workspace: WorkspaceId,
  after: Pick<PromptTitle, "id" | "updated_at"> | undefined
): Statement =>
  makeStatement(workspace, (parameter) => {
    const isOfWorkspace = `p.workspace_id = ${parameter(workspace)} and not p.is_archived`
    const follows =
      after === undefined
        ? ""
        : `and (p.updated_at, p.id) < (${parameter(after.updated_at)}::timestamptz, ${parameter(after.id)}::uuid)`
    return `select p.id, left(p.title, ${maxSlugSourceLength}) as title, p.updated_at from prompts p
      where ${isOfWorkspace} ${follows} order by p.updated_at desc, p.id desc limit ${maxTitlesPerRead}`
  })

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
