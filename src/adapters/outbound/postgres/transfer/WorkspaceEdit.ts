import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { ChangeOptions, WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import {
  type ContentEdit,
  type InvalidContent,
  isEmptyEdit,
  type WorkspaceContent
} from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { executeCounted } from "../driver/Query.ts"
import type { AuditRecorder } from "../workspaces/AuditLog.ts"
import { readContent } from "./ContentReader.ts"
import { deleteOtherPromptRows, writeContent } from "./ContentWriter.ts"
import { lockWorkspace, runAttempts, type Transact, tryLockWorkspace } from "./WriteAttempts.ts"

/** Another transaction holds the lock of the workspace. */
const WorkspaceLocked = { _tag: "WorkspaceLocked" } as const

/** Writes an edit in the current transaction. Rows that the edit does not name do not change. */
const writeEdit = (sql: PgClient, workspace: WorkspaceId, edit: ContentEdit) => {
  const content = { users: [], api_keys: [], ...edit }
  const edited = { condition: "t.prompt_id = any($1::uuid[])", value: edit.prompts.map(({ id }) => id) }
  const deletePromptRows = deleteOtherPromptRows(sql, ["prompt_tags", "prompt_fragments"], content, edited)
  const deleteFragments = executeCounted(sql, {
    text: "delete from fragments where id = any($1::uuid[]) and workspace_id = $2",
    params: [edit.removedFragments, workspace]
  })
  return writeContent(sql, workspace, content, deletePromptRows, deleteFragments)
}

/** Replaces the recorded states of workspace `$1` with the JSON array `$2`. Writes only the rows that differ. */
const replaceStates = `with given as (
    select kind, id, decode(hash, 'hex') as hash
    from json_to_recordset($2::json) s (kind text, id uuid, hash text)
  ), removed as (
    delete from imported_states t where t.workspace_id = $1::uuid
      and not exists (select from given s where s.kind = t.kind and s.id = t.id)
  )
  insert into imported_states (workspace_id, kind, id, hash)
  select $1::uuid, s.kind, s.id, s.hash
  from given s left join imported_states t on t.workspace_id = $1::uuid and t.kind = s.kind and t.id = s.id
  where t.hash is distinct from s.hash
  on conflict (workspace_id, kind, id) do update set hash = excluded.hash`

const countItems = ({ prompts, fragments, removedFragments, folders, tags }: ContentEdit) => ({
  prompts: prompts.length,
  versions: prompts.flatMap(({ versions }) => versions).length,
  fragments: fragments.length,
  removed_fragments: removedFragments.length,
  folders: folders.length,
  tags: tags.length
})

/**
 * Passes a workspace's content to `makeEdit`, and writes the edit that `makeEdit` returns. An attempt reads and writes
 * in one serializable transaction, which PostgreSQL rejects if another transaction interferes. This transaction never
 * waits for the lock of the workspace, because its snapshot would be older than the changes for which it waits. If the
 * lock is taken, a separate transaction waits for it, and then the attempt starts again.
 */
export const editContent = <A, E>(
  sql: PgClient,
  transact: Transact,
  workspace: WorkspaceId,
  makeEdit: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
  options: ChangeOptions | undefined,
  record: AuditRecorder
): Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable> => {
  const attemptEdit = Effect.gen(function* () {
    yield* sql`set transaction isolation level serializable`
    const locked = yield* sql.unsafe(tryLockWorkspace, [workspace])
    if (locked.length === 0) return yield* Effect.fail(WorkspaceLocked)
    const content = yield* readContent(sql, workspace)
    const [edit, result] = yield* makeEdit(content)
    if (!isEmptyEdit(edit)) {
      yield* writeEdit(sql, workspace, edit)
      yield* record({
        action: "workspace.edited",
        workspace_id: workspace,
        subject: options?.source ?? "unknown",
        details: countItems(edit)
      })
    }
    if (edit.importedStates !== undefined)
      yield* sql.unsafe(replaceStates, [workspace, JSON.stringify(edit.importedStates)])
    return result
  })
  const waitForLock = transact(sql.unsafe(lockWorkspace, [workspace]))
  const run: Effect.Effect<A, unknown> = Effect.catchIf(
    runAttempts(transact, options?.dryRun === true, attemptEdit),
    (error) => error === WorkspaceLocked,
    () => Effect.andThen(waitForLock, run)
  )
  // TypeScript cannot remove the handled errors from a union with a generic error type.
  return run as Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable>
}
