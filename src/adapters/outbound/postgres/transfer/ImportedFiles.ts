import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ImportedFile } from "../../../../domain/workspace/ImportedFile.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"

const decode = makeRowDecoder(Schema.Struct({ files: Schema.Array(ImportedFile) }))

/** Reads the list of files that the latest import or export of a directory recorded for a workspace. */
export const readImportedFiles = (sql: PgClient, workspace: WorkspaceId) =>
  Effect.map(
    sql.unsafe("select files from imported_files where workspace_id = $1", [workspace]),
    (rows) => decode(rows)[0]?.files ?? []
  )

/** Replaces a workspace's list of imported files in the current transaction, if the list has changed. */
export const writeImportedFiles = (
  sql: PgClient,
  workspace: WorkspaceId,
  files: ReadonlyArray<ImportedFile>
) =>
  sql.unsafe(
    `insert into imported_files as t (workspace_id, files) values ($1, $2::jsonb)
      on conflict (workspace_id) do update set files = excluded.files where t.files <> excluded.files`,
    [workspace, JSON.stringify(files)]
  )
