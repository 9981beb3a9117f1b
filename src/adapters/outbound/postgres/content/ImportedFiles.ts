import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ImportedFile } from "../../../../domain/ImportedFile.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeRowDecoder } from "../connection/RowDecoder.ts"

const select = `select kind, target_id, path, file_id, hash from imported_files
  where workspace_id = $1 order by kind, target_id`

const decode = makeRowDecoder<ImportedFile>(
  Schema.Struct({
    kind: Schema.Literals(["prompt", "fragment"]),
    target_id: Schema.String,
    path: Schema.String,
    file_id: Schema.NullOr(Schema.String),
    hash: Schema.String
  })
)

/** Reads the files of the latest import of files. */
export const readImportedFiles = (sql: PgClient, workspace: WorkspaceId) =>
  Effect.map(sql.unsafe(select, [workspace]), decode)

const fromFiles =
  "json_to_recordset($2::json) s (kind text, target_id uuid, path text, file_id uuid, hash text)"

const deleteOthers = `delete from imported_files t where t.workspace_id = $1
  and not exists (select from ${fromFiles} where s.kind = t.kind and s.target_id = t.target_id)`

const upsert = `insert into imported_files as t (workspace_id, kind, target_id, path, file_id, hash)
  select $1, s.kind, s.target_id, s.path, s.file_id, s.hash from ${fromFiles}
  on conflict (workspace_id, kind, target_id) do update
    set path = excluded.path, file_id = excluded.file_id, hash = excluded.hash
    where (t.path, t.file_id, t.hash) is distinct from (excluded.path, excluded.file_id, excluded.hash)`

/** Replaces a workspace's list of imported files in the current transaction. Writes only the rows that differ. */
export const writeImportedFiles = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: WorkspaceId,
  files: ReadonlyArray<ImportedFile>
) {
  const params = [workspace, JSON.stringify(files)]
  yield* sql.unsafe(deleteOthers, params)
  yield* sql.unsafe(upsert, params)
})
