import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { largeWork } from "../../../application/LargeWork.ts"
import { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import { withSpanIfTraced } from "../../../application/Spans.ts"
import { type PromptId, PromptNotFound, type WorkspaceId } from "../../../domain/Prompt.ts"
import { type ResolutionSource, ResolvedTooLarge } from "../../../domain/Resolution.ts"
import { VersionNotFound } from "../../../domain/Version.ts"
import { makeBatchedLookup } from "./BatchedLookup.ts"
import type { Row, Statement } from "./connection/Query.ts"
import { Database } from "./Database.ts"
import * as queries from "./PromptQueries.ts"
import * as rows from "./PromptRows.ts"

/** Returns true for a text that PostgreSQL cannot store, so that no tag can have it as its name. */
const isUnstorable = (text: string): boolean => text.includes("\0") || !text.isWellFormed()

const isComplete = (row: Row): boolean => row.id !== null || row.too_large === true

const toSource = (
  id: PromptId,
  row: Row | undefined
): Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge> => {
  if (row === undefined) return Effect.fail(PromptNotFound)
  return row.too_large === true ? Effect.fail(ResolvedTooLarge(id)) : Effect.succeed(rows.decodeSource(row))
}

const makePromptRepo = Effect.gen(function* () {
  const { queryPrompts, queryLargePrompts } = yield* Database

  /** Completes a row that was too large for its batch: reads it separately, in its workspace's turn. */
  const readComplete = (workspace: WorkspaceId, row: Row | undefined, makeStatement: () => Statement) =>
    row === undefined || isComplete(row)
      ? Effect.succeed(row)
      : Effect.map(largeWork.read(workspace, queryLargePrompts(makeStatement())), ([row]) => row)

  // A slow statement of one workspace must not delay the others.
  const partitionKey = ({ workspace }: queries.PromptKey) => workspace
  const getPromptRow = yield* makeBatchedLookup(queryPrompts, queries.getPrompts, partitionKey)
  const getSourceRow = yield* makeBatchedLookup(queryPrompts, queries.getSources, partitionKey)

  return PromptRepo.of({
    list: withSpanIfTraced("PromptRepo.list")((workspace, filter, page) =>
      filter.tag !== undefined && isUnstorable(filter.tag)
        ? Effect.succeed({ items: [], total: 0 })
        : Effect.map(queryPrompts(queries.listPrompts(workspace, filter, page)), rows.decodePromptList)
    ),
    listPage: withSpanIfTraced("PromptRepo.listPage")((workspace, filter, page) =>
      filter.tag !== undefined && isUnstorable(filter.tag)
        ? Effect.succeed([])
        : Effect.map(queryPrompts(queries.listPromptPage(workspace, filter, page)), rows.decodePromptPage)
    ),
    get: withSpanIfTraced("PromptRepo.get")((workspace, id) =>
      getPromptRow({ workspace, id }).pipe(
        Effect.flatMap((row) =>
          readComplete(workspace, row, () => queries.getPrompts([{ workspace, id }], queries.unbounded))
        ),
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodePrompt(row))
        )
      )
    ),
    getSource: withSpanIfTraced("PromptRepo.getSource")((workspace, id) =>
      getSourceRow({ workspace, id }).pipe(
        Effect.flatMap((row) =>
          readComplete(workspace, row, () => queries.getSources([{ workspace, id }], queries.unbounded))
        ),
        Effect.flatMap((row) => toSource(id, row))
      )
    ),
    listVersions: withSpanIfTraced("PromptRepo.listVersions")((workspace, id, oldest, page) =>
      Effect.flatMap(queryPrompts(queries.listVersions(workspace, id, oldest, page)), (found) =>
        found.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodeVersionList(found))
      )
    ),
    getVersion: withSpanIfTraced("PromptRepo.getVersion")((workspace, id, number, oldest) =>
      queryPrompts(queries.getVersion(workspace, id, number, oldest)).pipe(
        Effect.flatMap(([row]) =>
          readComplete(workspace, row, () =>
            queries.getVersion(workspace, id, number, oldest, queries.unbounded)
          )
        ),
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(rows.decodeVersion(row))
        )
      )
    )
  })
})

/** The prompts in PostgreSQL. A read takes one statement, and a second one if its row is large. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(PromptRepo, makePromptRepo)
