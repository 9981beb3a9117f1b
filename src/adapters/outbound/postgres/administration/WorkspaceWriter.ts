import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { ChangeOptions } from "../../../../application/ports/WorkspaceStore.ts"
import type { AuditEntry } from "../../../../domain/AuditEvent.ts"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import {
  type ContentEdit,
  InvalidContent,
  isEmptyEdit,
  type WorkspaceContent
} from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { type Database, isConcurrencyError } from "../Database.ts"
import { countRows } from "../driver/Query.ts"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"
import { readContent } from "./ContentReader.ts"
import {
  accountTables,
  type ContentToWrite,
  contentTables,
  deleteOtherRows,
  rejectConflicts,
  upsertRows
} from "./ContentWriter.ts"

/** Appends an event to the audit log in the current transaction. */
export type AuditRecorder = (entry: AuditEntry) => Effect.Effect<void, SqlError>

/**
 * Returns `InvalidContent` if PostgreSQL cannot store the content (SQLSTATE class 22 or 23), or if other transactions
 * interfered in every attempt. Returns any other error unchanged.
 */
const toInvalidContent = <E>(error: E): E | InvalidContent => {
  if (isSqlError(error) && /^2[23]/.test(sqlState(error)))
    return InvalidContent([{ path: "", message: `cannot be stored: ${describeSqlError(error)}` }])
  return isConcurrencyError(error)
    ? InvalidContent([{ path: "", message: "was changed by others in each attempt; try again" }])
    : error
}

/** The key of the advisory lock of workspace `$1`. Imports, edits and the deletion of the workspace take this lock. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"

/** Waits for the lock of workspace `$1`, and holds the lock until the transaction ends. */
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`

/** Returns the number of items of each kind in the content. */
const countItems = ({ prompts, fragments, folders, tags }: Omit<ContentToWrite, "users" | "api_keys">) => ({
  prompts: prompts.length,
  versions: prompts.flatMap(Struct.get("versions")).length,
  fragments: fragments.length,
  folders: folders.length,
  tags: tags.length
})

/**
 * Makes the content of a workspace equal to an archive, merges the name, the users and the keys, and returns how many
 * rows were written. The import writes users, keys and the name of the workspace last, so that revocations and billing
 * changes do not wait for the rest of the import.
 *
 * The import first deletes the tags, fragments and versions of prompts that the archive lacks, because the schema
 * limits the number of these rows. Each statement sees the transactions that were committed before the statement
 * started. If an editor commits a version after this deletion, the version remains, and the import overwrites the
 * prompt. If the import wrote prompts first, a prompt could keep the edit but lose the version.
 */
const mergeArchive = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  const { id, name, tier, billing_status } = archive.workspace
  yield* sql.unsafe(lockWorkspace, [id])
  const workspaces = yield* countRows(
    sql`insert into workspaces ${sql.insert({ id, name, tier, billing_status })} on conflict (id) do nothing`
  )
  yield* rejectConflicts(sql, id, archive)
  const lists = ["prompt_tags", "prompt_fragments", "prompt_versions"] as const
  const removedLists = yield* deleteOtherRows(sql, lists, id, archive)
  const content = yield* upsertRows(sql, contentTables, id, archive)
  const removedItems = yield* deleteOtherRows(sql, ["prompts", "fragments", "tags", "folders"], id, archive)
  // Checks the constraints of the content before the import locks users and keys.
  yield* sql`set constraints all immediate`
  const accounts = yield* upsertRows(sql, accountTables, id, archive)
  const renamed = yield* countRows(
    sql`update workspaces set name = ${name} where id = ${id} and name <> ${name}`
  )
  // Another transaction may have added a row with an id of the archive since the first check.
  yield* rejectConflicts(sql, id, archive)
  return {
    added: workspaces + content.added + accounts.added,
    changed: content.changed + accounts.changed + renamed,
    removed: removedLists + removedItems
  }
})

/** Another transaction holds the lock of the workspace. */
const WorkspaceLocked = { _tag: "WorkspaceLocked" } as const

/** Writes an edit in the current transaction. Rows that the edit does not name do not change. */
const writeEdit = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId, edit: ContentEdit) {
  const content = { users: [], api_keys: [], ...edit }
  yield* rejectConflicts(sql, workspace, content)
  yield* deleteOtherRows(sql, ["prompt_tags", "prompt_fragments"], workspace, content, edit.prompts)
  yield* upsertRows(sql, contentTables, workspace, content)
  yield* sql`delete from fragments where id = any(${edit.removedFragments}::uuid[]) and workspace_id = ${workspace}`
})

/** Makes the recorded states of workspace `$1` equal to the JSON array `$2`. Writes only the states that differ. */
const replaceStates = `with given as (
    select $1::uuid as workspace_id, kind, id, decode(hash, 'hex') as hash
    from json_to_recordset($2::json) s (kind text, id uuid, hash text)
  ), removed as (
    delete from imported_states where workspace_id = $1 and (kind, id) not in (select kind, id from given)
  )
  insert into imported_states (workspace_id, kind, id, hash)
  select * from given except select workspace_id, kind, id, hash from imported_states where workspace_id = $1
  on conflict (workspace_id, kind, id) do update set hash = excluded.hash`

/** The error that rolls back the transaction of a dry run. The error carries the result of the dry run. */
class DryRunResult<A> {
  readonly value: A
  constructor(value: A) {
    this.value = value
  }
}

/** Makes the methods of the store that write content. */
export const makeWriter = (
  sql: PgClient,
  { transact, handleSqlErrors }: Database["Service"],
  record: AuditRecorder
) => {
  /**
   * Runs a write in a transaction, which a dry run rolls back. Rows can swap names, numbers and parents, so PostgreSQL
   * checks constraints at the end. Fails with `InvalidContent` if PostgreSQL cannot store the content.
   */
  const run = <A, E>(
    isolation: "read committed" | "serializable",
    options: ChangeOptions | undefined,
    write: Effect.Effect<A, E>
  ) =>
    transact(
      isolation,
      sql`set constraints all deferred`.pipe(
        Effect.andThen(write),
        Effect.tap(sql`set constraints all immediate`),
        Effect.flatMap((value) =>
          options?.dryRun === true ? Effect.fail(new DryRunResult(value)) : Effect.succeed(value)
        )
      )
    ).pipe(
      Effect.catchIf(
        (error): error is DryRunResult<A> => error instanceof DryRunResult,
        ({ value }) => Effect.succeed(value)
      ),
      Effect.mapError(toInvalidContent),
      handleSqlErrors
    )

  return {
    importWorkspace: (archive: WholeWorkspace, options?: ChangeOptions) =>
      run(
        "read committed",
        options,
        Effect.gen(function* () {
          const rows = yield* mergeArchive(sql, archive)
          const workspace_id = archive.workspace.id
          const accounts = { users: archive.users.length, api_keys: archive.api_keys.length }
          const details = { ...countItems(archive), ...accounts }
          const subject = options?.source ?? "unknown"
          if (rows.added + rows.changed + rows.removed > 0)
            yield* record({ action: "workspace.imported", workspace_id, subject, details })
          return { workspace_id, ...details, rows }
        })
      ),
    /**
     * Runs an edit, in several attempts if necessary. An attempt reads and writes in one serializable transaction,
     * which PostgreSQL rejects if another transaction interferes. If an attempt has to wait for the lock of the
     * workspace, a new attempt starts, because the old snapshot lacks the changes of the other transaction.
     */
    editContent: <A, E>(
      workspace: WorkspaceId,
      makeEdit: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
      options?: ChangeOptions
    ) => {
      const attempt = Effect.gen(function* () {
        const tryLock = `select where pg_try_advisory_xact_lock(${lockKey})`
        if ((yield* sql.unsafe(tryLock, [workspace])).length === 0) {
          yield* sql.unsafe(lockWorkspace, [workspace])
          return yield* Effect.fail(WorkspaceLocked)
        }
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
      return Effect.retry(run("serializable", options, attempt), {
        while: (error): error is typeof WorkspaceLocked => error === WorkspaceLocked
      })
    }
  }
}
