import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { WorkspacePart } from "../../../../domain/WorkspaceParts.ts"
import { contentTables } from "./ContentTables.ts"
import { writeContent } from "./ContentWriter.ts"
import { rejectConflicts } from "./ImportConflicts.ts"
import * as queries from "./ImportQueries.ts"
import { toPartRows } from "./ImportRows.ts"
import { makeRowSpool, type RowSpool } from "./RowSpool.ts"
import { stageRows } from "./StagedRows.ts"
import { runAttempts, type Transact } from "./WriteAttempts.ts"

/** The rows of an archive and the id of its workspace. */
interface SpooledArchive {
  readonly workspace: string
  readonly spool: RowSpool
}

/** Reads an archive to its end. */
const spoolArchive = Effect.fnUntraced(function* <E>(parts: Stream.Stream<WorkspacePart, E>) {
  const spool = yield* makeRowSpool
  const counts = new Map<WorkspacePart["list"], number>()
  let workspace = ""
  yield* Stream.runForEachArray(
    parts,
    Effect.fnUntraced(function* (parts) {
      for (const part of parts) {
        if (part.list === "workspace") workspace = part.item.id
        const index = counts.get(part.list) ?? 0
        counts.set(part.list, index + 1)
        yield* spool.add(toPartRows(workspace, part, index))
      }
    })
  )
  return { workspace, spool } satisfies SpooledArchive
})

/**
 * Makes a workspace equal to an archive, in the current transaction. Rows of other workspaces are only read. Users, keys and
 * the workspace's row are written right before the end, because revocations and billing changes must not wait for an
 * import.
 */
const writeArchive = Effect.fnUntraced(function* (
  sql: PgClient,
  { workspace, spool }: SpooledArchive,
  dryRun: boolean
) {
  const rows = yield* stageRows(sql, spool, dryRun)
  const { from } = rows
  if (!dryRun) yield* sql.unsafe(queries.lockWorkspace, [workspace])
  yield* rejectConflicts(sql, rows, workspace)
  if (dryRun) return

  yield* sql.unsafe(queries.deferConstraints)
  yield* sql.unsafe(queries.insertMissing(from, "workspaces"))
  yield* writeContent(sql, rows)
  if (spool.has("prompts")) {
    yield* sql.unsafe(queries.deleteOtherTagsOfStagedPrompts(from))
    if (spool.has("prompt_tags")) yield* sql.unsafe(queries.insertTags(from))
  }
  for (const table of contentTables.toReversed()) {
    yield* sql.unsafe(queries.deleteOtherContent(from, table), [workspace])
  }
  yield* sql.unsafe(queries.checkConstraints)

  if (spool.has("users")) yield* sql.unsafe(queries.insertUsers(from))
  if (spool.has("api_keys")) yield* sql.unsafe(queries.insertMissing(from, "api_keys"))
  if (spool.has("users")) yield* sql.unsafe(queries.updateUsers(from))
  if (spool.has("api_keys")) yield* sql.unsafe(queries.updateKeys(from))
  yield* sql.unsafe(queries.renameWorkspace(from))
})

/** Makes a workspace equal to an archive. The database is not used before the archive has been read to its end. */
export const importWorkspace = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  transact: Transact,
  parts: Stream.Stream<WorkspacePart, E>,
  dryRun: boolean
) {
  const archive = yield* spoolArchive(parts)
  yield* runAttempts(transact, dryRun, writeArchive(sql, archive, dryRun))
}, Effect.scoped)
