import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import { toTier } from "../../../../domain/Billing.ts"
import {
  type CurrentPrompt,
  emptyHistory,
  type VersionHistory,
  type WorkspaceContent
} from "../../../../domain/workspace/WorkspaceContent.ts"
import type { PromptId } from "../../../../domain/Prompt.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { execute } from "../driver/Query.ts"
import { decodeWorkspaces, selectWorkspace } from "../workspaces/WorkspaceQueries.ts"
import * as queries from "./ExportQueries.ts"

/** Reads a workspace without its content. */
export const readWorkspace = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  const [row] = decodeWorkspaces(yield* execute(sql, selectWorkspace(workspace)))
  return row === undefined ? yield* Effect.fail(WorkspaceNotFound) : { ...row, tier: toTier(row.tier) }
})

/** Reads the current state of a workspace's content. Must run in a transaction with one snapshot. */
export const readContent = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  yield* readWorkspace(sql, workspace)
  const readList = <A>({ text, decode }: queries.ListQuery<A>) =>
    Effect.map(sql.unsafe(text, [workspace]), decode)
  const promptFragments = Map.groupBy(yield* readList(queries.promptFragments), ({ promptId }) => promptId)
  const histories = new Map(
    (yield* readList(queries.histories)).map(
      ({ id, current_id, last_id, last_number }): readonly [PromptId, VersionHistory] => {
        const last =
          last_id === null || last_number === null ? null : { id: last_id, version_number: last_number }
        return [id, { current_id, last }]
      }
    )
  )
  const prompts = (yield* readList(queries.prompts)).map(
    (prompt): CurrentPrompt => ({
      ...prompt,
      fragments: (promptFragments.get(prompt.id) ?? []).map(({ item }) => item),
      history: histories.get(prompt.id) ?? emptyHistory
    })
  )
  const [imported] = yield* readList(queries.importedFiles)
  return {
    folders: yield* readList(queries.lists.folders),
    tags: yield* readList(queries.lists.tags),
    fragments: yield* readList(queries.lists.fragments),
    prompts,
    importedFiles: imported?.files ?? []
  } satisfies WorkspaceContent
})
