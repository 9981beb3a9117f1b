import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { ImportedState } from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"

const decodeStates = makeRowDecoder(ImportedState)

/** Reads the states that the latest import of files recorded for a workspace. */
export const readImportRecord = (sql: PgClient, workspace: WorkspaceId) =>
  Effect.map(
    sql.unsafe("select kind, id, encode(hash, 'hex') as hash from imported_states where workspace_id = $1", [
      workspace
    ]),
    decodeStates
  )

const deleteStates = `delete from imported_states t using unnest($2::text[], $3::uuid[]) s (kind, id)
  where t.workspace_id = $1 and t.kind = s.kind and t.id = s.id`

const upsertStates = `insert into imported_states (workspace_id, kind, id, hash)
  select $1::uuid, s.kind, s.id, decode(s.hash, 'hex') from unnest($2::text[], $3::uuid[], $4::text[]) s (kind, id, hash)
  on conflict (workspace_id, kind, id) do update set hash = excluded.hash`

/**
 * Replaces the recorded states `before` of a workspace with `after`, in the current transaction. Writes only the rows
 * that differ.
 */
export const replaceImportRecord = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: WorkspaceId,
  before: ReadonlyArray<ImportedState>,
  after: ReadonlyArray<ImportedState>
) {
  const toKey = ({ kind, id }: ImportedState) => `${kind} ${id}`
  const hashes = new Map(before.map((state) => [toKey(state), state.hash]))
  const remaining = new Set(after.map(toKey))
  const removed = before.filter((state) => !remaining.has(toKey(state)))
  const written = after.filter((state) => hashes.get(toKey(state)) !== state.hash)
  const toColumns = (states: ReadonlyArray<ImportedState>) => [
    states.map(({ kind }) => kind),
    states.map(({ id }) => id)
  ]
  if (removed.length > 0) yield* sql.unsafe(deleteStates, [workspace, ...toColumns(removed)])
  if (written.length > 0)
    yield* sql.unsafe(upsertStates, [workspace, ...toColumns(written), written.map(({ hash }) => hash)])
})
