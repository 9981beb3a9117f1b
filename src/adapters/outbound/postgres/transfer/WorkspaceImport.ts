import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ChangeOptions, ImportResult } from "../../../../application/ports/WorkspaceStore.ts"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import { executeCounted } from "../driver/Query.ts"
import type { AuditRecorder } from "../workspaces/AuditLog.ts"
import { deleteOtherPromptRows, rejectConflicts, upsertRows, writeContent } from "./ContentWriter.ts"
import { lockWorkspace, runAttempts, type Transact } from "./WriteAttempts.ts"

/** Adds the workspace if it does not exist. Returns the number of added rows. */
const addWorkspace = (
  sql: PgClient,
  { workspace: { id, name, tier, billing_status } }: WholeWorkspace
): Effect.Effect<number, SqlError> =>
  executeCounted(sql, {
    text: `insert into workspaces (id, name, tier, billing_status) values ($1, $2, $3, $4)
      on conflict (id) do nothing`,
    params: [id, name, tier, billing_status]
  })

/** Deletes the items of a workspace that are not in the archive. Returns the number of deleted rows. */
const deleteOtherItems = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  let deleted = 0
  for (const table of ["prompts", "fragments", "tags", "folders"] as const)
    deleted += yield* executeCounted(sql, {
      text: `delete from ${table} where workspace_id = $1 and id not in (select unnest($2::uuid[]))`,
      params: [archive.workspace.id, archive[table].map(({ id }) => id)]
    })
  return deleted
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
  const { id, name } = archive.workspace
  yield* sql.unsafe(lockWorkspace, [id])
  // Makes room for a hash table of all ids of an archive. Otherwise, PostgreSQL would compare each row with each id.
  yield* sql.unsafe("set local work_mem = '128MB'")
  const workspaces = yield* addWorkspace(sql, archive)
  const deletePromptRows = deleteOtherPromptRows(
    sql,
    ["prompt_tags", "prompt_fragments", "prompt_versions"],
    archive,
    {
      condition: "exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = $1)",
      value: id
    }
  )
  const content = yield* writeContent(sql, id, archive, deletePromptRows, deleteOtherItems(sql, archive))
  const accounts = yield* upsertRows(sql, ["users", "api_keys"], id, archive)
  const renamed = yield* executeCounted(sql, {
    text: "update workspaces set name = $2 where id = $1 and name <> $2",
    params: [id, name]
  })
  // Another transaction may have added a row with an id of the archive since the first check.
  yield* rejectConflicts(sql, id, archive)
  return {
    added: workspaces + content.added + accounts.added,
    changed: content.changed + accounts.changed + renamed,
    removed: content.removed
  }
})

const countItems = ({ prompts, ...lists }: WholeWorkspace): Omit<ImportResult, "workspace_id" | "rows"> => ({
  prompts: prompts.length,
  versions: prompts.reduce((count, { versions }) => count + versions.length, 0),
  fragments: lists.fragments.length,
  folders: lists.folders.length,
  tags: lists.tags.length,
  users: lists.users.length,
  api_keys: lists.api_keys.length
})

/** Imports an archive in one transaction. Returns how many items the archive has and how many rows were written. */
export const importWorkspace = (
  sql: PgClient,
  transact: Transact,
  archive: WholeWorkspace,
  options: ChangeOptions | undefined,
  record: AuditRecorder
) =>
  runAttempts(
    transact,
    options?.dryRun === true,
    Effect.gen(function* () {
      const rows = yield* mergeArchive(sql, archive)
      const [workspace_id, details] = [archive.workspace.id, countItems(archive)]
      const subject = options?.source ?? "unknown"
      yield* record({ action: "workspace.imported", workspace_id, subject, details })
      return { workspace_id, ...details, rows }
    })
  )
