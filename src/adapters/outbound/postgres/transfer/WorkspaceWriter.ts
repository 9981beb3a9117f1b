import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { ChangeOptions, WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import {
  type ContentEdit,
  InvalidContent,
  isEmptyEdit,
  type WorkspaceContent
} from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { type Database, isConcurrencyError } from "../Database.ts"
import { executeCounted } from "../driver/Query.ts"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"
import type { AuditRecorder } from "../workspaces/AuditLog.ts"
import { readContent } from "./ContentReader.ts"
import {
  type Content,
  deleteOtherPromptRows,
  rejectConflicts,
  upsertRows,
  writeContent
} from "./ContentWriter.ts"

/** Describes an error of the last attempt, if PostgreSQL cannot store the content (class 22 or 23) or was interrupted. */
const describeContentError = (error: unknown): string | undefined => {
  if (isSqlError(error) && /^2[23]/.test(sqlState(error)))
    return `cannot be stored: ${describeSqlError(error)}`
  return isConcurrencyError(error) ? "was changed by others in each attempt; try again" : undefined
}

/** The error that rolls back the transaction of a dry run. It carries the result of the dry run. */
class DryRunResult<A> {
  readonly value: A
  constructor(value: A) {
    this.value = value
  }
}

/**
 * Runs a write in a transaction, which a dry run rolls back. Fails with `InvalidContent` if PostgreSQL cannot store the
 * content.
 */
const runWrite = <A, E>(
  { transact, handleSqlErrors }: Database["Service"],
  isolation: "read committed" | "serializable",
  dryRun: boolean,
  write: Effect.Effect<A, E>
): Effect.Effect<A, Exclude<E, SqlError> | InvalidContent | Unavailable> => {
  const work: Effect.Effect<A, unknown> = dryRun
    ? Effect.flatMap(write, (value) => Effect.fail(new DryRunResult(value)))
    : write
  const run = handleSqlErrors(
    Effect.catch(transact(isolation, work), (error) => {
      if (error instanceof DryRunResult) return Effect.succeed(error.value as A)
      const message = describeContentError(error)
      return Effect.fail(message === undefined ? error : InvalidContent([{ path: "", message }]))
    })
  )
  // TypeScript cannot remove the handled errors from a union with a generic error type.
  return run as Effect.Effect<A, Exclude<E, SqlError> | InvalidContent | Unavailable>
}

/** The key of the advisory lock of workspace `$1`, which imports, edits and its deletion take. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"

/** Takes the lock of workspace `$1` until the transaction ends. Waits while another transaction holds the lock. */
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`

/** Takes the lock like `lockWorkspace`, but does not wait: returns no row if another transaction holds the lock. */
const tryLockWorkspace = `select where pg_try_advisory_xact_lock(${lockKey})`

/** Returns the number of items of each kind in content. */
const countItems = ({ prompts, fragments, folders, tags }: Omit<Content, "users" | "api_keys">) => ({
  prompts: prompts.length,
  versions: prompts.reduce((count, { versions }) => count + versions.length, 0),
  fragments: fragments.length,
  folders: folders.length,
  tags: tags.length
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
  const { id, name, tier, billing_status } = archive.workspace
  yield* sql.unsafe(lockWorkspace, [id])
  // Makes room for a hash table of all ids of an archive. Otherwise, PostgreSQL would compare each row with each id.
  yield* sql`set local work_mem = '128MB'`
  const workspaces = yield* executeCounted(sql, {
    text: `insert into workspaces (id, name, tier, billing_status) values ($1, $2, $3, $4)
      on conflict (id) do nothing`,
    params: [id, name, tier, billing_status]
  })
  const inWorkspace = "exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = $1)"
  const lists = ["prompt_tags", "prompt_fragments", "prompt_versions"] as const
  const deleteLists = deleteOtherPromptRows(sql, lists, archive, { condition: inWorkspace, value: id })
  const content = yield* writeContent(sql, id, archive, deleteLists, deleteOtherItems(sql, archive))
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

/** Imports an archive in one transaction. Returns how many items the archive has and how many rows were written. */
export const importWorkspace = (
  sql: PgClient,
  database: Database["Service"],
  archive: WholeWorkspace,
  options: ChangeOptions | undefined,
  record: AuditRecorder
) =>
  runWrite(
    database,
    "read committed",
    options?.dryRun === true,
    Effect.gen(function* () {
      const rows = yield* mergeArchive(sql, archive)
      const workspace_id = archive.workspace.id
      const accounts = { users: archive.users.length, api_keys: archive.api_keys.length }
      const details = { ...countItems(archive), ...accounts }
      const subject = options?.source ?? "unknown"
      yield* record({ action: "workspace.imported", workspace_id, subject, details })
      return { workspace_id, ...details, rows }
    })
  )

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

/**
 * Passes a workspace's content to `makeEdit`, and writes the edit that `makeEdit` returns. An attempt reads and writes
 * in one serializable transaction, which PostgreSQL rejects if another transaction interferes. This transaction never
 * waits for the lock of the workspace, because its snapshot would be older than the changes for which it waits. If the
 * lock is taken, a separate transaction waits for it, and then the attempt starts again.
 */
export const editContent = <A, E>(
  sql: PgClient,
  database: Database["Service"],
  workspace: WorkspaceId,
  makeEdit: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
  options: ChangeOptions | undefined,
  record: AuditRecorder
): Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable> => {
  const attemptEdit = Effect.gen(function* () {
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
        details: { ...countItems(edit), removed_fragments: edit.removedFragments.length }
      })
    }
    if (edit.importedStates !== undefined)
      yield* sql.unsafe(replaceStates, [workspace, JSON.stringify(edit.importedStates)])
    return result
  })
  const waitForLock = database.handleSqlErrors(
    database.transact("read committed", sql.unsafe(lockWorkspace, [workspace]))
  )
  const run: Effect.Effect<A, unknown> = Effect.catchIf(
    runWrite(database, "serializable", options?.dryRun === true, attemptEdit),
    (error) => error === WorkspaceLocked,
    () => Effect.andThen(waitForLock, run)
  )
  // TypeScript cannot remove the handled errors from a union with a generic error type.
  return run as Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable>
}
