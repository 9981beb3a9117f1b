import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import { toTier } from "../../../../domain/Billing.ts"
import type { PromptId } from "../../../../domain/Prompt.ts"
import {
  type CurrentPrompt,
  emptyHistory,
  type VersionHistory,
  type WorkspaceContent
} from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { execute } from "../driver/Query.ts"
import { decodeWorkspaces, selectWorkspace } from "../workspaces/WorkspaceQueries.ts"
import * as queries from "./ExportQueries.ts"
import { readImportRecord } from "./ImportRecord.ts"

/** Reads a workspace without its content. */
export const readWorkspace = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  const [row] = decodeWorkspaces(yield* execute(sql, selectWorkspace(workspace)))
  return row === undefined ? yield* Effect.fail(WorkspaceNotFound) : { ...row, tier: toTier(row.tier) }
})

export const readList = <A>(
  sql: PgClient,
  workspace: WorkspaceId,
  { text, decode }: queries.ListQuery<A>
): Effect.Effect<ReadonlyArray<A>, SqlError> => Effect.map(sql.unsafe(text, [workspace]), decode)

/** Reads the current state of a workspace's content. Must run in a transaction with one snapshot. */
export const readContent = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  yield* readWorkspace(sql, workspace)
  const read = <A>(query: queries.ListQuery<A>) => readList(sql, workspace, query)
  const promptFragments = Map.groupBy(yield* read(queries.promptFragments), ({ promptId }) => promptId)
  const histories = new Map(
    (yield* read(queries.histories)).map(
      ({ id, current_id, last_id, last_number }): readonly [PromptId, VersionHistory] => {
        const last =
          last_id === null || last_number === null ? null : { id: last_id, version_number: last_number }
        return [id, { current_id, last }]
      }
    )
  )
  const prompts = (yield* read(queries.prompts)).map(
    (prompt): CurrentPrompt => ({
      ...prompt,
      fragments: (promptFragments.get(prompt.id) ?? []).map(({ item }) => item),
      history: histories.get(prompt.id) ?? emptyHistory
    })
  )
  return {
    folders: yield* read(queries.lists.folders),
    tags: yield* read(queries.lists.tags),
    fragments: yield* read(queries.lists.fragments),
    prompts,
    importedStates: yield* readImportRecord(sql, workspace)
  } satisfies WorkspaceContent
})
