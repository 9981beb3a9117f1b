import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type PromptFilter, PromptRepo } from "../../../../application/ports/PromptRepo.ts"
import { withSpanIfTraced } from "../../../../application/support/Observability.ts"
import { type PromptId, PromptNotFound } from "../../../../domain/Prompt.ts"
import { type ResolutionSource, ResolvedTooLarge } from "../../../../domain/Resolution.ts"
import { VersionNotFound } from "../../../../domain/Version.ts"
import { makeBatchedLookup } from "../driver/BatchedLookup.ts"
import type { Row } from "../driver/Query.ts"
import { Database } from "../Database.ts"
import * as queries from "./PromptQueries.ts"
import * as rows from "./PromptRows.ts"

/** Returns false for a tag that no prompt can have, because PostgreSQL cannot store its name. */
const canMatch = ({ tag }: PromptFilter): boolean =>
  tag === undefined || (!tag.includes("\0") && tag.isWellFormed())

const toSource = (
  id: PromptId,
  row: Row | undefined
): Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge> => {
  if (row === undefined) return Effect.fail(PromptNotFound)
  return row.too_large === true ? Effect.fail(ResolvedTooLarge(id)) : Effect.succeed(rows.decodeSource(row))
}

const makePromptRepo = Effect.gen(function* () {
  const { queryPrompts } = yield* Database
  // A slow statement of one workspace must not delay other workspaces.
  const partitionKey = ({ workspace }: queries.PromptKey) => workspace
  const getPromptRow = yield* makeBatchedLookup(queryPrompts, queries.selectPromptsByKey, partitionKey)
  const getSourceRow = yield* makeBatchedLookup(queryPrompts, queries.selectSources, partitionKey)

  return PromptRepo.of({
    list: withSpanIfTraced("PromptRepo.list")((workspace, filter, page) =>
      canMatch(filter)
        ? Effect.map(queryPrompts(queries.selectPrompts(workspace, filter, page)), rows.decodePromptList)
        : Effect.succeed({ items: [], total: 0 })
    ),
    listPage: withSpanIfTraced("PromptRepo.listPage")((workspace, filter, page) =>
      canMatch(filter)
        ? Effect.map(queryPrompts(queries.selectPromptPage(workspace, filter, page)), rows.decodePromptPage)
        : Effect.succeed([])
    ),
    get: withSpanIfTraced("PromptRepo.get")((workspace, id) =>
      Effect.flatMap(getPromptRow({ workspace, id }), (row) =>
        row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodePrompt(row))
      )
    ),
    getSource: withSpanIfTraced("PromptRepo.getSource")((workspace, id) =>
      Effect.flatMap(getSourceRow({ workspace, id }), (row) => toSource(id, row))
    ),
    listVersions: withSpanIfTraced("PromptRepo.listVersions")((workspace, id, oldest, page) =>
      Effect.flatMap(queryPrompts(queries.selectVersions(workspace, id, oldest, page)), (found) =>
        found.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodeVersionList(found))
      )
    ),
    getVersion: withSpanIfTraced("PromptRepo.getVersion")((workspace, id, number, oldest) =>
      Effect.flatMap(queryPrompts(queries.selectVersion(workspace, id, number, oldest)), ([row]) =>
        row === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(rows.decodeVersion(row))
      )
    )
  })
})

/** Provides the prompts in PostgreSQL. Each read runs one statement. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(PromptRepo, makePromptRepo)
