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
import { forEachPage, readChildren, readTags, toIds } from "./ContentPages.ts"
import * as queries from "./ExportQueries.ts"
import { readImportedFiles } from "./ImportedFiles.ts"

/** Reads a workspace without its content. */
export const readWorkspace = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  const [row] = decodeWorkspaces(yield* execute(sql, selectWorkspace(workspace)))
  return row === undefined ? yield* Effect.fail(WorkspaceNotFound) : { ...row, tier: toTier(row.tier) }
})

const readList = Effect.fnUntraced(function* <A>(
  sql: PgClient,
  workspace: WorkspaceId,
  list: queries.WorkspaceTable<A>
) {
  const items: Array<A> = []
  yield* forEachPage(sql, workspace, list, (rows) =>
    Effect.sync(() => {
      for (const row of rows) items.push(row)
    })
  )
  return items
})

const readHistories = Effect.fnUntraced(function* (sql: PgClient, promptIds: ReadonlyArray<string>) {
  const rows = queries.decodeHistories(yield* execute(sql, queries.selectHistories(promptIds)))
  const histories = new Map(
    rows.map(({ id, current_id, last_id, last_number }): readonly [PromptId, VersionHistory] => {
      const last =
        last_id === null || last_number === null ? null : { id: last_id, version_number: last_number }
      return [id, { current_id, last }]
    })
  )
  return (promptId: PromptId) => histories.get(promptId) ?? emptyHistory
})

const readPrompts = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  const prompts: Array<CurrentPrompt> = []
  yield* forEachPage(
    sql,
    workspace,
    queries.prompts,
    Effect.fnUntraced(function* (rows) {
      const tags = yield* readTags(sql, workspace, toIds(rows))
      const promptFragments = yield* readChildren(sql, workspace, queries.promptFragments, toIds(rows))
      const histories = yield* readHistories(sql, toIds(rows))
      for (const row of rows) {
        prompts.push({
          ...row,
          tags: tags(row.id),
          fragments: promptFragments(row.id),
          history: histories(row.id)
        })
      }
    })
  )
  return prompts
})

/** Reads the current state of a workspace's content. Runs in a transaction with one snapshot. */
export const readContent = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  yield* readWorkspace(sql, workspace)
  return {
    folders: yield* readList(sql, workspace, queries.folders),
    tags: yield* readList(sql, workspace, queries.tags),
    fragments: yield* readList(sql, workspace, queries.fragments),
    prompts: yield* readPrompts(sql, workspace),
    importedFiles: yield* readImportedFiles(sql, workspace)
  } satisfies WorkspaceContent
})
