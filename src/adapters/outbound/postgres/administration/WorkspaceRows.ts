import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import { AuditEvent } from "../../../../domain/AuditEvent.ts"
import { Timestamp } from "../../../../domain/Timestamp.ts"
import { Folder, StoredKey, User, Workspace, WorkspaceTag } from "../../../../domain/Workspace.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"

/** Runs statements: a client in the current transaction, a pool without a transaction. */
export interface StatementRunner<E> {
  readonly unsafe: (text: string, params?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<object>, E>
}

/** Reads rows. `clauses` are the clauses of the query after its FROM clause. */
export type Reader<A> = <E>(
  sql: StatementRunner<E>,
  clauses: string,
  params?: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<A>, E>

/** Makes a reader that selects one column per field of a schema. `expressions` has the SQL of computed columns. */
export const makeReader = <Fields extends Schema.Struct.Fields>(
  row: Schema.Struct<Fields> & Schema.Decoder<Schema.Struct<Fields>["Type"]>,
  from: string,
  expressions: Readonly<Record<string, string>> = {}
): Reader<Schema.Struct<Fields>["Type"]> => {
  const columns = Object.keys(row.fields).map((name) =>
    name in expressions ? `${expressions[name]} as ${name}` : name
  )
  const decode = Schema.decodeUnknownSync(Schema.Array(row))
  return (sql, clauses, params) =>
    Effect.map(sql.unsafe(`select ${columns.join(", ")} from ${from} ${clauses}`, params), decode)
}

/** A row of `workspaces`. `tier` can be a tier that this program does not know. */
const WorkspaceRow = Workspace.mapFields(Struct.assign({ tier: Schema.String }))

/** A row of `api_keys` as operators see it: without the hash, and with the email of the owner. */
const KeyInfoRow = Schema.Struct({
  ...Struct.omit(StoredKey.fields, ["created_by", "key_hash"]),
  owner: Schema.String,
  last_used_at: Schema.NullOr(Timestamp)
})

export const readWorkspaces = makeReader(WorkspaceRow, "workspaces")
export const readUsers = makeReader(User, "users u")
/** Reads keys. The clauses refer to a key as `k`. */
export const readKeys = makeReader(KeyInfoRow, "api_keys k join users u on u.id = k.created_by", {
  id: "k.id",
  owner: "u.email"
})
export const readFolders = makeReader(Folder, "folders")
export const readTags = makeReader(WorkspaceTag, "tags")
export const readEvents = makeReader(AuditEvent, "audit_events e", { id: "e.id::text" })

/** The clauses that select the owners `u` of the keys of workspace `$1`. */
export const keyOwnersClause = `where exists (
  select from api_keys k where k.created_by = u.id and k.workspace_id = $1) order by id`

/** Returns the first row. Fails with `notFound` if there is no row. */
export const findFirst = <A, R, E>(rows: Effect.Effect<ReadonlyArray<A>, R>, notFound: E) =>
  Effect.flatMap(rows, ([row]) => (row === undefined ? Effect.fail(notFound) : Effect.succeed(row)))

export const findWorkspace = <E>(sql: StatementRunner<E>, id: WorkspaceId, lock = "") =>
  findFirst(readWorkspaces(sql, `where id = $1 ${lock}`, [id]), WorkspaceNotFound)
