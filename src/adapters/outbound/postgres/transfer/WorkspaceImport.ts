import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type {
  ChangeOptions,
  ImportResult,
  ImportSummary,
  RowCounts
} from "../../../../application/ports/WorkspaceStore.ts"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import { executeCounted } from "../driver/Query.ts"
import type { AuditRecorder } from "../workspaces/AuditLog.ts"
import { addWorkspace, findAccountConflicts, mergeAccounts } from "./AccountWriter.ts"
import {
  checkConstraints,
  type Content,
  type ContentTable,
  deferConstraints,
  deleteOtherPromptRows,
  findContentConflicts,
  isOwn,
  listRows,
  rejectConflicts,
  writeContent
} from "./ContentWriter.ts"
import { lockWorkspace, runAttempts, type Transact } from "./WriteAttempts.ts"

/** Makes room for a hash table of all ids of an archive. Otherwise, PostgreSQL would compare each row with each id. */
const setMemory = "set local work_mem = '128MB'"

const rejectArchiveConflicts = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  const accounts = yield* findAccountConflicts(sql, archive)
  const content = yield* findContentConflicts(sql, archive.workspace.id, archive)
  yield* rejectConflicts([...accounts, ...content])
})

/** Deletes the rows of a workspace that are not in the content. Returns the number of deleted rows. */
const deleteOtherRows = (sql: PgClient, table: ContentTable, workspace: string, content: Content) =>
  executeCounted(sql, {
    text: `delete from ${table} t where ${isOwn(table)} and id not in (select unnest($2::uuid[]))`,
    params: [workspace, [...listRows(table, workspace, content)].map(({ row }) => row.id)]
  })

/**
 * Makes the content of a workspace equal to an archive, merges the name, the users and the keys, and returns how many
 * rows were written. Users, keys and the name of the workspace are written last, so that revocations and billing changes
 * do not wait for the rest of an import.
 *
 * Each statement sees what other transactions committed before it. Rows of prompts are deleted before prompts are
 * compared. If an editor commits a new version in between, the version stays, and the prompt is overwritten. In the
 * opposite order, the prompt could keep the editor's change but lose its version.
 */
const mergeArchive = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  const workspace = archive.workspace.id
  yield* sql.unsafe(lockWorkspace, [workspace])
  yield* sql.unsafe(setMemory)
  yield* rejectArchiveConflicts(sql, archive)
  yield* sql.unsafe(deferConstraints)
  let added = yield* addWorkspace(sql, archive.workspace)
  let removed = 0
  for (const table of ["prompt_tags", "prompt_fragments", "prompt_versions"] as const) {
    removed += yield* deleteOtherPromptRows(sql, table, archive, {
      condition: "exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = $1)",
      value: workspace
    })
  }
  const content = yield* writeContent(sql, workspace, archive)
  for (const table of ["prompts", "fragments", "tags", "folders"] as const) {
    removed += yield* deleteOtherRows(sql, table, workspace, archive)
  }
  yield* sql.unsafe(checkConstraints)
  const accounts = yield* mergeAccounts(sql, archive)
  // Another transaction may have added a row with an id of the archive since the first check.
  yield* rejectArchiveConflicts(sql, archive)
  added += content.added + accounts.added
  return { added, changed: content.changed + accounts.changed, removed } satisfies RowCounts
})

const summarize = ({ workspace, prompts, ...lists }: WholeWorkspace): ImportSummary => ({
  workspace_id: workspace.id,
  prompts: prompts.length,
  versions: prompts.reduce((count, { versions }) => count + versions.length, 0),
  fragments: lists.fragments.length,
  folders: lists.folders.length,
  tags: lists.tags.length,
  users: lists.users.length,
  api_keys: lists.api_keys.length
})

/**
 * Makes the content of a workspace equal to an archive, and merges the name, the users and the keys, in one
 * transaction. Returns how many items the archive has and how many rows were written.
 */
export const importWorkspace = (
  sql: PgClient,
  transact: Transact,
  archive: WholeWorkspace,
  options: ChangeOptions | undefined,
  record: AuditRecorder
) => {
  const summary = summarize(archive)
  return runAttempts(
    transact,
    options?.dryRun === true,
    Effect.gen(function* () {
      const rows = yield* mergeArchive(sql, archive)
      const { workspace_id: _, ...details } = summary
      yield* record({
        action: "workspace.imported",
        workspace_id: archive.workspace.id,
        subject: options?.source ?? "unknown",
        details
      })
      return { ...summary, rows } satisfies ImportResult
    })
  )
}
