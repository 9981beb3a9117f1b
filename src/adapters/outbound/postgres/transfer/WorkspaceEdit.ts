import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { InvalidContent } from "../../../../domain/workspace/Problem.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { ChangeOptions, WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import {
  type ContentEdit,
  isEmptyEdit,
  toEditedParts,
  type WorkspaceContent
} from "../../../../domain/workspace/WorkspaceContent.ts"
import type { PromptId } from "../../../../domain/Prompt.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { AuditRecorder } from "../workspaces/AuditLog.ts"
import { readContent } from "./ContentReader.ts"
import { rejectConflicts } from "./ImportConflicts.ts"
import * as queries from "./ImportQueries.ts"
import { repeatableRead, runAttempts, type Transact } from "./WriteAttempts.ts"
import { makeStaging } from "./Staging.ts"
import { writeContent } from "./WorkspaceImport.ts"

/**
 * Another transaction holds the import lock of the workspace, or may have held the lock since this edit's snapshot was
 * taken.
 */
const WorkspaceLocked = { _tag: "WorkspaceLocked" } as const
type WorkspaceLocked = typeof WorkspaceLocked

const isWorkspaceLocked = (error: unknown): error is WorkspaceLocked => error === WorkspaceLocked

/**
 * Writes an edit of a workspace's content in the current transaction. Rows that the edit does not name do not change.
 */
const writeEdit = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: WorkspaceId,
  edit: ContentEdit,
  dryRun: boolean
) {
  const staging = yield* makeStaging(sql)
  yield* staging.add(toEditedParts(edit))
  yield* staging.end
  yield* rejectConflicts(sql, staging, workspace)
  if (dryRun) return

  yield* sql.unsafe(queries.deferConstraints)
  const findPromptsWith = (list: "tags" | "fragments") =>
    edit.prompts.filter((prompt) => prompt[list] !== undefined).map(({ row }) => row.id)
  // Delete rows before inserting rows, because the schema limits the number of rows of a prompt.
  yield* sql.unsafe(queries.deleteOtherBindingsOfPrompts, [findPromptsWith("fragments")])
  yield* writeContent(sql, staging, workspace)
  yield* sql.unsafe(queries.deleteOtherTagsOfPrompts, [findPromptsWith("tags")])
  yield* sql.unsafe(queries.insertTags)
  yield* sql.unsafe(queries.deleteFragments, [edit.removedFragments, workspace])
  yield* sql.unsafe(queries.checkConstraints)
})

/** Returns the numbers of items that an edit writes, and of fragments that the edit removes. */
const countItems = ({ prompts, fragments, removedFragments, folders, tags }: ContentEdit) => ({
  prompts: prompts.length,
  versions: prompts.filter(({ version }) => version !== undefined).length,
  fragments: fragments.length,
  removed_fragments: removedFragments.length,
  folders: folders.length,
  tags: tags.length
})

/**
 * Passes a workspace's content to `makeEdit`, and writes the edit that `makeEdit` returns. An attempt reads and writes
 * in one snapshot. PostgreSQL rejects the attempt if another transaction has changed one of the written rows since the
 * snapshot. The next attempt therefore first locks the prompts of the failed edit, so that no other transaction can
 * change them while the attempt runs.
 */
export const editContent = <A, E>(
  sql: PgClient,
  transact: Transact,
  workspace: WorkspaceId,
  makeEdit: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
  options: ChangeOptions | undefined,
  record: AuditRecorder
): Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable> => {
  const dryRun = options?.dryRun === true
  let contestedPrompts: ReadonlyArray<PromptId> = []

  const lockOrFail = Effect.gen(function* () {
    const { locked } = queries.decodeTryLock(yield* sql.unsafe(queries.tryLockWorkspace, [workspace]))
    if (!locked) return yield* Effect.fail(WorkspaceLocked)
    if (contestedPrompts.length > 0) yield* sql.unsafe(queries.lockPrompts, [contestedPrompts])
  })
  const attemptEdit = Effect.gen(function* () {
    yield* sql.unsafe(repeatableRead)
    if (!dryRun) yield* lockOrFail
    const [edit, result] = yield* makeEdit(yield* readContent(sql, workspace))
    contestedPrompts = edit.prompts.map(({ row }) => row.id)
    if (!isEmptyEdit(edit)) {
      yield* writeEdit(sql, workspace, edit, dryRun)
      if (!dryRun)
        yield* record({
          action: "workspace.edited",
          workspace_id: workspace,
          subject: options?.source ?? "unknown",
          details: countItems(edit)
        })
    }
    if (!dryRun && edit.importedFiles !== undefined)
      yield* sql.unsafe(queries.writeImportedFiles, [workspace, JSON.stringify(edit.importedFiles)])
    return result
  })
  const waitForLock = transact(sql.unsafe(queries.lockWorkspace, [workspace]))
  const run: Effect.Effect<A, unknown> = Effect.catchIf(
    Effect.suspend(() => runAttempts(transact, dryRun, attemptEdit)),
    isWorkspaceLocked,
    () => Effect.andThen(waitForLock, run)
  )
  // TypeScript cannot remove the handled errors from a union with a generic error type.
  return run as Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable>
}
