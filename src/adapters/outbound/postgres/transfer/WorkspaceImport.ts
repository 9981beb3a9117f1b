import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type {
  ChangeOptions,
  ImportResult,
  ImportSummary,
  RowCounts
} from "../../../../application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { WorkspacePart } from "../../../../domain/workspace/WorkspaceParts.ts"
import type { AuditRecorder } from "../workspaces/AuditLog.ts"
import { executeCounted } from "../driver/Query.ts"
import { contentTables } from "./ContentTables.ts"
import { rejectConflicts } from "./ImportConflicts.ts"
import * as queries from "./ImportQueries.ts"
import { makeStaging, type Staging } from "./Staging.ts"
import { runAttempts, type Transact } from "./WriteAttempts.ts"

/** Stages the rows of an archive. Returns the number of items in each list of the archive. */
const stageArchive = Effect.fnUntraced(function* <E>(
  { add, end, count }: Staging,
  parts: Stream.Stream<WorkspacePart, E>
) {
  let workspace_id = "" as WorkspaceId
  yield* Stream.runForEachArray(parts, (parts) => {
    for (const part of parts) if (part.list === "workspace") workspace_id = part.item.id
    return add(parts)
  })
  yield* end
  return {
    workspace_id,
    prompts: count("prompts"),
    versions: count("prompt_versions"),
    fragments: count("fragments"),
    folders: count("folders"),
    tags: count("tags"),
    users: count("users"),
    api_keys: count("api_keys")
  } satisfies ImportSummary
})

/** Updates and adds the staged rows of content. Returns how many rows were changed and added. */
export const writeContent = Effect.fnUntraced(function* (sql: PgClient, { has }: Staging, workspace: string) {
  let [changed, added] = [0, 0]
  for (const table of contentTables.filter(has)) {
    changed += yield* executeCounted(sql, queries.updateContent(table, workspace))
    added += yield* executeCounted(sql, queries.insertMissing(table, workspace))
  }
  return { changed, added }
})

/**
 * Makes the content of a workspace equal to the staged archive, merges the name, the users and the keys, and returns
 * how many rows were written. Rows of other workspaces are only read. Users, keys and the name of the workspace are
 * written last, so that revocations and billing changes do not wait for the rest of an import.
 */
const mergeArchive = Effect.fnUntraced(function* (
  sql: PgClient,
  staging: Staging,
  workspace: string,
  dryRun: boolean
) {
  if (!dryRun) yield* sql.unsafe(queries.lockWorkspace, [workspace])
  yield* rejectConflicts(sql, staging, workspace)
  if (dryRun) return queries.decodeCounts(yield* sql.unsafe(queries.countWrites, [workspace]))

  const write = (text: string, params: ReadonlyArray<unknown> = []) => executeCounted(sql, { text, params })
  const insertMissing = (table: "workspaces" | "api_keys") =>
    executeCounted(sql, queries.insertMissing(table, workspace))
  yield* sql.unsafe(queries.deferConstraints)
  let added = yield* insertMissing("workspaces")
  // Delete rows before inserting rows, because the schema limits the number of fragments of a prompt.
  let removed = yield* write(queries.deleteOtherContent("prompt_fragments"), [workspace])
  const content = yield* writeContent(sql, staging, workspace)
  removed += yield* write(queries.deleteOtherTagsOfStagedPrompts)
  added += content.added + (yield* write(queries.insertTags))
  for (const table of contentTables.toReversed()) {
    removed += yield* write(queries.deleteOtherContent(table), [workspace])
  }
  yield* sql.unsafe(queries.checkConstraints)
  added += (yield* write(queries.insertUsers)) + (yield* insertMissing("api_keys"))
  let changed = content.changed + (yield* write(queries.updateUsers))
  changed += (yield* write(queries.updateKeys)) + (yield* write(queries.renameWorkspace))
  return { added, changed, removed } satisfies RowCounts
})

/**
 * Makes the content of a workspace equal to an archive, and merges the name, the users and the keys. Returns how many
 * items the archive has and how many rows were written. The rows are staged once. If a concurrent transaction
 * interferes with an attempt to write them, the attempt is rolled back to its savepoint and repeated.
 */
export const importWorkspace = <E>(
  sql: PgClient,
  transact: Transact,
  parts: Stream.Stream<WorkspacePart, E>,
  options: ChangeOptions | undefined,
  record: AuditRecorder
) => {
  const dryRun = options?.dryRun === true
  return transact(
    Effect.gen(function* () {
      const staging = yield* makeStaging(sql)
      const summary = yield* stageArchive(staging, parts)
      const write = mergeArchive(sql, staging, summary.workspace_id, dryRun)
      const { workspace_id, ...counts } = summary
      const recorded = Effect.tap(
        write,
        record({
          action: "workspace.imported",
          workspace_id,
          subject: options?.source ?? "unknown",
          details: counts
        })
      )
      const rows = yield* runAttempts(sql.withTransaction, dryRun, dryRun ? write : recorded)
      return { ...summary, rows } satisfies ImportResult
    })
  )
}
