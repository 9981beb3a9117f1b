import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { InvalidContent, type Problem } from "../../../../domain/WorkspaceContent.ts"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { toKeyRow } from "./AccountWriter.ts"
import { type Content, type ContentTable, contentTables, isOwn, listRows } from "./ContentTables.ts"

/** `ordinal` is the position of the given row, starting at 1. `by_id` is true if the id is the conflict. */
const decodeConflicts = makeRowDecoder(Schema.Struct({ ordinal: Schema.Int, by_id: Schema.Boolean }))

const selectConflicts = (conflicts: string): string =>
  `select ordinal::int, by_id from (${conflicts}) c order by ordinal, by_id desc`

/** Selects the positions of the ids `$2` that belong to another workspace than `$1`. */
const findConflictingIds = (table: ContentTable): string =>
  selectConflicts(`select s.ordinal, true as by_id
    from unnest($2::uuid[]) with ordinality s (id, ordinal) join ${table} t on t.id = s.id
    where not ${isOwn(table)}`)

const givenUsers = "json_populate_recordset(null::users, $1::json) with ordinality s"

/** Selects the positions of the users `$1` whose id or email belongs to another user. */
const findConflictingUsers = selectConflicts(`select s.ordinality as ordinal, true as by_id
    from ${givenUsers} join users u on u.id = s.id
    where lower(u.email) <> lower(s.email)
    union all
    select s.ordinality, false
    from ${givenUsers} join users u on lower(u.email) = lower(s.email)
    where u.id <> s.id`)

const givenKeys = "json_populate_recordset(null::api_keys, $1::json) with ordinality s"

/**
 * Selects the positions of the keys `$1` whose id belongs to another workspace than `$2`, or whose hash belongs to
 * another key. The id of a stored key without a workspace conflicts unless the given key has no workspace either, and
 * has the same owner.
 */
const findConflictingKeys = selectConflicts(`select s.ordinality as ordinal, true as by_id
    from ${givenKeys} join api_keys k on k.id = s.id
    where k.workspace_id is distinct from $2
      and (k.workspace_id, k.created_by) is distinct from (s.workspace_id, s.created_by)
    union all
    select s.ordinality, false
    from ${givenKeys} join api_keys k on k.key_hash = s.key_hash
    where k.id <> s.id`)

/** Converts conflicts to problems. `listPaths` returns the path of each given row. */
const toProblems = (
  rows: ReadonlyArray<unknown>,
  listPaths: () => ReadonlyArray<string>,
  describe: (isId: boolean) => readonly [column: string, owner: "workspace" | "user" | "key"]
): ReadonlyArray<Problem> => {
  const conflicts = decodeConflicts(rows)
  const paths = conflicts.length === 0 ? [] : listPaths()
  return conflicts.map(({ ordinal, by_id }) => {
    const [column, owner] = describe(by_id)
    return { path: `${paths[ordinal - 1]}.${column}`, message: `belongs to another ${owner}` }
  })
}

const findContentConflicts = (sql: PgClient, workspace: string, content: Content) =>
  Effect.map(
    Effect.forEach(contentTables, (table) => {
      const rows = () => [...listRows(table, workspace, content)]
      const ids = rows().map(({ row }) => row.id)
      return Effect.map(sql.unsafe(findConflictingIds(table), [workspace, ids]), (conflicts) =>
        toProblems(
          conflicts,
          () => rows().map(({ path }) => path),
          () => ["id", "workspace"]
        )
      )
    }),
    (problems) => problems.flat()
  )

const findAccountConflicts = Effect.fnUntraced(function* (
  sql: PgClient,
  { workspace, users, api_keys }: WholeWorkspace
) {
  const listPaths = (list: "users" | "api_keys", items: ReadonlyArray<unknown>) => () =>
    items.map((_, index) => `${list}[${index}]`)
  const byUser = yield* sql.unsafe(findConflictingUsers, [JSON.stringify(users)])
  const byKey = yield* sql.unsafe(findConflictingKeys, [JSON.stringify(api_keys.map(toKeyRow)), workspace.id])
  return [
    ...toProblems(byUser, listPaths("users", users), (isId) => [isId ? "id" : "email", "user"]),
    ...toProblems(byKey, listPaths("api_keys", api_keys), (isId) =>
      isId ? ["id", "workspace"] : ["key_hash", "key"]
    )
  ]
})

const rejectProblems = (problems: ReadonlyArray<Problem>): Effect.Effect<void, InvalidContent> =>
  problems.length === 0 ? Effect.void : Effect.fail(InvalidContent(problems))

/**
 * Fails if content has an id that belongs to another workspace. The error contains the first conflicts and the number
 * of all conflicts.
 */
export const rejectContentConflicts = (sql: PgClient, workspace: string, content: Content) =>
  Effect.flatMap(findContentConflicts(sql, workspace, content), rejectProblems)

/** Like `rejectContentConflicts`, for a whole archive with its users and keys. */
export const rejectArchiveConflicts = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  const accounts = yield* findAccountConflicts(sql, archive)
  const content = yield* findContentConflicts(sql, archive.workspace.id, archive)
  yield* rejectProblems([...accounts, ...content])
})
