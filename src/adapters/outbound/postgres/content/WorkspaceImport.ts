import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { ChangeOptions, ImportResult, RowCounts } from "../../../../application/ports/WorkspaceStore.ts"
import { toWorkspaceImportedEntry } from "../../../../domain/AuditEvent.ts"
import { addPart, emptySummary, type ImportSummary } from "../../../../domain/ImportSummary.ts"
import type { WorkspacePart } from "../../../../domain/WorkspaceParts.ts"
import type { AuditRecorder } from "../AuditRecorder.ts"
import { executeCounted } from "../connection/Query.ts"
import { insertBatch } from "./BatchRows.ts"
import { isConstraintViolation } from "./ConstraintViolation.ts"
import { contentTables } from "./ContentTables.ts"
import { writeContent } from "./ContentWriter.ts"
import { rejectConflicts } from "./ImportConflicts.ts"
import * as queries from "./ImportQueries.ts"
import { toPartRows } from "./ImportRows.ts"
import { makeRowSpool, type RowSpool } from "./RowSpool.ts"
import { type StagedRows, stageRows } from "./StagedRows.ts"
import { AttemptFailed, runAttempts, type Transact } from "./WriteAttempts.ts"

/** The rows of an archive and the number of its items. */
interface SpooledArchive {
  readonly summary: ImportSummary
  readonly spool: RowSpool
}

/** Reads an archive to its end. */
const spoolArchive = Effect.fnUntraced(function* <E>(parts: Stream.Stream<WorkspacePart, E>) {
  const spool = yield* makeRowSpool
  const counts = new Map<WorkspacePart["list"], number>()
  let summary = emptySummary
  yield* Stream.runForEachArray(
    parts,
    Effect.fnUntraced(function* (parts) {
      for (const part of parts) {
        summary = addPart(summary, part)
        const index = counts.get(part.list) ?? 0
        counts.set(part.list, index + 1)
        yield* spool.add(toPartRows(part, index))
      }
    })
  )
  return { summary, spool } satisfies SpooledArchive
})

/** Writes the staged users, keys and the name of the workspace. Returns the number of rows that were changed and added. */
const writeAccess = Effect.fnUntraced(function* (sql: PgClient, { from, tables }: StagedRows) {
  const write = (text: string) => executeCounted(sql, text)
  let [added, changed] = [0, 0]
  if (tables.includes("users")) added += yield* write(queries.insertUsers(from))
  if (tables.includes("api_keys")) added += yield* write(queries.insertMissing(from, "api_keys"))
  if (tables.includes("users")) changed += yield* write(queries.updateUsers(from))
  if (tables.includes("api_keys")) changed += yield* write(queries.updateKeys(from))
  changed += yield* write(queries.renameWorkspace(from))
  return { added, changed }
})

/**
 * Makes a workspace equal to an archive, in the current transaction, and returns the number of rows that it wrote.
 * Rows of other workspaces are only read. Users, keys and the workspace's row are written right before the end,
 * because revocations and billing changes must not wait for an import.
 */
const mergeArchive = Effect.fnUntraced(function* (
  sql: PgClient,
  { summary, spool }: SpooledArchive,
  dryRun: boolean
) {
  const { workspace_id: workspace } = summary
  const rows = yield* stageRows(sql, workspace, spool, dryRun)
  const { from } = rows
  if (!dryRun) yield* sql.unsafe(queries.lockWorkspace, [workspace])
  yield* rejectConflicts(sql, rows, workspace)
  if (dryRun) return queries.decodeCounts(yield* sql.unsafe(queries.countWrites(from), [workspace]))

  const write = (text: string, params?: ReadonlyArray<unknown>) => executeCounted(sql, text, params)
  yield* sql.unsafe(queries.deferConstraints)
  let added = yield* write(queries.insertMissing(from, "workspaces"))
  // Deleted first: the schema limits the fragments of a prompt.
  let removed = yield* write(queries.deleteOtherContent(from, "prompt_fragments"), [workspace])
  const content = yield* writeContent(sql, rows)
  added += content.added
  if (spool.has("prompts")) {
    removed += yield* write(queries.deleteOtherTagsOfStagedPrompts(from))
    if (spool.has("prompt_tags")) added += yield* write(queries.insertTags(from))
  }
  for (const table of contentTables.toReversed()) {
    removed += yield* write(queries.deleteOtherContent(from, table), [workspace])
  }
  yield* sql.unsafe(queries.checkConstraints)
  const access = yield* writeAccess(sql, rows)
  return {
    added: added + access.added,
    changed: content.changed + access.changed,
    removed
  } satisfies RowCounts
})

/**
 * Adds a workspace that does not exist: its content needs no comparison with existing rows, so it is inserted without
 * being staged. Fails with `AttemptFailed` if the workspace exists by now, and if any row conflicts with another or
 * cannot be stored; a merge then finds out why.
 */
const insertArchive = Effect.fnUntraced(
  function* (sql: PgClient, { summary, spool }: SpooledArchive) {
    const { workspace_id: workspace } = summary
    yield* sql.unsafe(queries.lockWorkspace, [workspace])
    const rows = yield* stageRows(sql, workspace, spool, false, ["workspaces", "users", "api_keys"])
    yield* rejectConflicts(sql, rows, workspace)
    yield* sql.unsafe(queries.deferConstraints)
    let added = yield* executeCounted(sql, queries.insertMissing(rows.from, "workspaces"))
    if (added === 0) return yield* Effect.fail(AttemptFailed)
    for (const table of [...contentTables, "prompt_tags"] as const) {
      yield* spool.forEachBatch(
        table,
        Effect.fnUntraced(function* (batch) {
          const { text, params } = insertBatch(table, batch)
          added += yield* executeCounted(sql, text, params)
        })
      )
    }
    yield* sql.unsafe(queries.checkConstraints)
    const access = yield* writeAccess(sql, rows)
    return { added: added + access.added, changed: access.changed, removed: 0 } satisfies RowCounts
  },
  Effect.catchIf(
    (error) => !isSqlError(error) || isConstraintViolation(error),
    () => Effect.fail(AttemptFailed)
  )
)

/**
 * Makes a workspace equal to an archive. Returns the number of the archive's items and of the rows that it wrote. The
 * database is not used before the archive has been read to its end.
 */
export const importWorkspace = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  transact: Transact,
  parts: Stream.Stream<WorkspacePart, E>,
  options: ChangeOptions | undefined,
  record: AuditRecorder
) {
  const dryRun = options?.dryRun === true
  const archive = yield* spoolArchive(parts)
  const { summary } = archive
  let isFirstAttempt = true
  const write = Effect.gen(function* () {
    const mayInsert = isFirstAttempt && !dryRun
    isFirstAttempt = false
    if (mayInsert) {
      const found = yield* sql.unsafe(queries.findWorkspace, [summary.workspace_id])
      if (!queries.decodeFound(found).found) return yield* insertArchive(sql, archive)
    }
    return yield* mergeArchive(sql, archive, dryRun)
  })
  const recorded = Effect.tap(write, record([toWorkspaceImportedEntry(options?.source, summary)]))
  const rows = yield* runAttempts(transact, dryRun, dryRun ? write : recorded)
  return { ...summary, rows } satisfies ImportResult
}, Effect.scoped)
