import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import { InvalidContent, type Problem } from "../../../../domain/WorkspaceContent.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { toKeyRow } from "./AccountWriter.ts"
import { type Content, contentTables, isOwn, listRows } from "./ContentWriter.ts"

/** A field of the given row at the position `ordinal`, starting at 1, has a value that belongs to another `owner`. */
const decodeConflicts = makeRowDecoder(
  Schema.Struct({ ordinal: Schema.Int, field: Schema.String, owner: Schema.String })
)

/** Runs a query of conflicts. `paths` has the path of each given row. */
const findConflicts = (
  sql: PgClient,
  conflicts: string,
  params: ReadonlyArray<unknown>,
  paths: ReadonlyArray<string>
) =>
  Effect.map(
    sql.unsafe(`select ordinal::int, field, owner from (${conflicts}) c order by ordinal, field`, params),
    (rows) =>
      decodeConflicts(rows).map(
        ({ ordinal, field, owner }): Problem => ({
          path: `${paths[ordinal - 1]}.${field}`,
          message: `belongs to another ${owner}`
        })
      )
  )

const givenUsers = "json_populate_recordset(null::users, $1::json) with ordinality s"

/** Selects the users `$1` whose id or email belongs to another user. */
const conflictingUsers = `
  select s.ordinality as ordinal, 'id' as field, 'user' as owner from ${givenUsers} join users u on u.id = s.id
  where lower(u.email) <> lower(s.email)
  union all
  select s.ordinality, 'email', 'user' from ${givenUsers} join users u on lower(u.email) = lower(s.email)
  where u.id <> s.id`

const givenKeys = "json_populate_recordset(null::api_keys, $1::json) with ordinality s"

/**
 * Selects the keys `$1` whose id belongs to another workspace than `$2`, or whose hash belongs to another key. The id
 * of a stored key without a workspace conflicts unless the given key has no workspace either, and has the same owner.
 */
const conflictingKeys = `
  select s.ordinality as ordinal, 'id' as field, 'workspace' as owner
  from ${givenKeys} join api_keys k on k.id = s.id
  where k.workspace_id is distinct from $2
    and (k.workspace_id, k.created_by) is distinct from (s.workspace_id, s.created_by)
  union all
  select s.ordinality, 'key_hash', 'key' from ${givenKeys} join api_keys k on k.key_hash = s.key_hash
  where k.id <> s.id`

const findContentConflicts = (sql: PgClient, workspace: string, content: Content) =>
  Effect.map(
    Effect.forEach(contentTables, (table) => {
      const rows = [...listRows(table, workspace, content)]
      // The ids `$2` that belong to another workspace than `$1`.
      const conflicts = `select s.ordinal, 'id' as field, 'workspace' as owner
        from unnest($2::uuid[]) with ordinality s (id, ordinal) join ${table} t on t.id = s.id
        where not ${isOwn(table)}`
      const ids = rows.map(({ row }) => row.id)
      return findConflicts(
        sql,
        conflicts,
        [workspace, ids],
        rows.map(({ path }) => path)
      )
    }),
    (problems) => problems.flat()
  )

const rejectProblems = (problems: ReadonlyArray<Problem>): Effect.Effect<void, InvalidContent> =>
  problems.length === 0 ? Effect.void : Effect.fail(InvalidContent(problems))

/** Fails if content has an id that belongs to another workspace. */
export const rejectContentConflicts = (sql: PgClient, workspace: string, content: Content) =>
  Effect.flatMap(findContentConflicts(sql, workspace, content), rejectProblems)

/** Like `rejectContentConflicts`, for a whole archive with its users and keys. */
export const rejectArchiveConflicts = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  const { workspace, users, api_keys } = archive
  const listPaths = (list: "users" | "api_keys") => archive[list].map((_, index) => `${list}[${index}]`)
  const keys = JSON.stringify(api_keys.map(toKeyRow))
  yield* rejectProblems([
    ...(yield* findConflicts(sql, conflictingUsers, [JSON.stringify(users)], listPaths("users"))),
    ...(yield* findConflicts(sql, conflictingKeys, [keys, workspace.id], listPaths("api_keys"))),
    ...(yield* findContentConflicts(sql, workspace.id, archive))
  ])
})
