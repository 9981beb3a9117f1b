import * as Schema from "effect/Schema"
import { maxProblems } from "../../../../application/transfer/ProblemList.ts"
import type { Statement } from "../driver/Query.ts"
import { makeFirstRowDecoder, makeRowDecoder } from "../driver/RowDecoder.ts"
import {
  belongsToWorkspace,
  type ContentTable,
  contentColumns,
  contentTables,
  type ImportTable,
  importColumns
} from "./ContentTables.ts"
import { stagedTable } from "./Staging.ts"

/** The number of the lock that imports, edits and the deletion of workspace `$1` take. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"

/** Takes the import lock of workspace `$1`. Waits while another transaction holds the lock. */
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`

/**
 * Takes the import lock of workspace `$1` if the lock is free. `locked` is false if another transaction holds the lock.
 * `locked` is also false if another transaction was committed after the snapshot was taken and before the lock was
 * taken: that transaction may have held the lock, and the snapshot does not contain its changes.
 */
export const tryLockWorkspace = `select case when pg_try_advisory_xact_lock(${lockKey})
    then not exists (
      select from (
        select pg_snapshot_xip(pg_current_snapshot())
        union all
        select n::text::xid8
        from generate_series(
          pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
          pg_current_xact_id()::text::bigint - 1
        ) n
      ) hidden (xid)
      where pg_xact_status(xid) = 'committed'
    )
    else false
  end as locked`

export const decodeTryLock = makeFirstRowDecoder(Schema.Struct({ locked: Schema.Boolean }))

/** Locks the prompts `$1` against changes until the transaction ends. */
export const lockPrompts = "select from prompts where id = any($1::uuid[]) order by id for no key update"

/**
 * Deferrable constraints are checked at the end of an import or an edit, because rows may swap names, numbers and
 * parents.
 */
export const deferConstraints = "set constraints all deferred"
export const checkConstraints = "set constraints all immediate"

/** Returns the column with the workspace of a content row `t`, and the join that this column needs, if any. */
const joinWorkspace = (table: ContentTable): { readonly join: string; readonly workspace: string } =>
  belongsToWorkspace(table)
    ? { join: "", workspace: "t.workspace_id" }
    : { join: "join prompts p on p.id = t.prompt_id", workspace: "p.workspace_id" }

/** Selects the first conflicts of a query, in the order of the import. Each row has the total number of conflicts. */
const selectFirstConflicts = (conflicts: string): string =>
  `select path, by_id, (count(*) over ())::int as count from (${conflicts}) c
    order by ordinal, by_id desc limit ${maxProblems}`

/** Selects the first staged rows whose ids belong to another workspace than `$1`. */
export const findConflictingIds = (table: ContentTable): string => {
  const { join, workspace } = joinWorkspace(table)
  return selectFirstConflicts(`select s.path, s.ordinal, true as by_id
    from ${stagedTable(table)} s join ${table} t on t.id = s.id ${join}
    where ${workspace} <> $1`)
}

/** Selects the first staged users whose id or email belongs to another user. */
export const findConflictingUsers = selectFirstConflicts(`select s.path, s.ordinal, u.id = s.id as by_id
    from ${stagedTable("users")} s join users u on u.id = s.id
    where lower(u.email) <> lower(s.email)
    union all
    select s.path, s.ordinal, false
    from ${stagedTable("users")} s join users u on lower(u.email) = lower(s.email)
    where u.id <> s.id`)

/**
 * Selects the first staged keys whose id belongs to another workspace than `$1`, or whose hash belongs to another key.
 */
export const findConflictingKeys = selectFirstConflicts(`select s.path, s.ordinal, true as by_id
    from ${stagedTable("api_keys")} s join api_keys k on k.id = s.id
    where k.workspace_id <> $1
    union all
    select s.path, s.ordinal, false
    from ${stagedTable("api_keys")} s join api_keys k on k.key_hash = s.key_hash
    where k.id <> s.id`)

/** Decodes the rows of the queries for conflicts; `by_id` is true if the id conflicts. */
export const decodeConflicts = makeRowDecoder(
  Schema.Struct({ path: Schema.String, by_id: Schema.Boolean, count: Schema.Int })
)

/** The columns that an import may change in an existing row. */
const listWritableColumns = (table: ContentTable): ReadonlyArray<string> =>
  contentColumns[table].filter((name) => name !== "id" && name !== "workspace_id")

/**
 * Returns the FROM and WHERE clauses for the staged rows `s` that differ from the row `t` that has the same id in
 * workspace `$1`.
 */
const fromDifferingContent = (table: ContentTable): string => {
  const columns = listWritableColumns(table)
  const sameWorkspace = belongsToWorkspace(table) ? "and t.workspace_id = $1" : ""
  return `${stagedTable(table)} s where t.id = s.id ${sameWorkspace}
    and (${columns.map((name) => `t.${name}`)}) is distinct from (${columns.map((name) => `s.${name}`)})`
}

const toParams = (table: ImportTable, workspace: string): ReadonlyArray<string> =>
  belongsToWorkspace(table) ? [workspace] : []

/** Updates the rows of a workspace that differ from the staged rows. Rows that do not differ are not locked. */
export const updateContent = (table: ContentTable, workspace: string): Statement => ({
  text: `update ${table} t set ${listWritableColumns(table).map((name) => `${name} = s.${name}`)}
    from ${fromDifferingContent(table)}`,
  params: toParams(table, workspace)
})

/** Returns the FROM and WHERE clauses for the staged rows `s` that are not in the table yet. */
const fromMissing = (table: ImportTable): string =>
  `${stagedTable(table)} s where not exists (select from ${table} t where t.id = s.id)`

/**
 * Adds the staged rows that are not in the table yet. Rows of content are added to `workspace`. Fails if another
 * transaction adds one of the rows at the same time.
 */
export const insertMissing = (table: ImportTable, workspace: string): Statement => {
  const columns = importColumns[table]
  const values = columns.map((name) =>
    name === "workspace_id" && belongsToWorkspace(table) ? "$1::uuid" : `s.${name}`
  )
  return {
    text: `insert into ${table} (${columns}) select ${values} from ${fromMissing(table)}`,
    params: toParams(table, workspace)
  }
}

/** Returns the FROM and WHERE clauses for the rows `t` of workspace `$1` that are not staged. */
const fromOtherContent = (table: ContentTable): string => {
  const { join, workspace } = joinWorkspace(table)
  return `${table} t ${join} where ${workspace} = $1 and not exists (select from ${stagedTable(table)} s where s.id = t.id)`
}

/** Deletes the rows of workspace `$1` that are not staged. */
export const deleteOtherContent = (table: ContentTable): string =>
  `delete from ${table} where id in (select t.id from ${fromOtherContent(table)})`

const fromOtherTags = (prompts: string): string => `prompt_tags t
  where t.prompt_id ${prompts} and not exists (
    select from ${stagedTable("prompt_tags")} s where s.prompt_id = t.prompt_id and s.tag_id = t.tag_id
  )`

const fromOtherTagsOfStagedPrompts = fromOtherTags(`in (select s.id from ${stagedTable("prompts")} s)`)

/** Removes from the staged prompts all tags that are not staged. */
export const deleteOtherTagsOfStagedPrompts = `delete from ${fromOtherTagsOfStagedPrompts}`

/** Removes from the prompts `$1` all tags that are not staged. */
export const deleteOtherTagsOfPrompts = `delete from ${fromOtherTags("= any($1::uuid[])")}`

/** Removes from the prompts `$1` all fragment bindings that are not staged. */
export const deleteOtherBindingsOfPrompts = `delete from prompt_fragments t where t.prompt_id = any($1::uuid[])
  and not exists (select from ${stagedTable("prompt_fragments")} s where s.id = t.id)`

/** Deletes the fragments `$1` of workspace `$2`. */
export const deleteFragments = "delete from fragments where id = any($1::uuid[]) and workspace_id = $2"

/** Replaces the list of imported files of workspace `$1` with the JSON array `$2` if the list has changed. */
export const writeImportedFiles = `insert into imported_files as t (workspace_id, files) values ($1, $2::jsonb)
  on conflict (workspace_id) do update set files = excluded.files where t.files <> excluded.files`

const fromMissingTags = `${stagedTable("prompt_tags")} s
  where not exists (select from prompt_tags t where t.prompt_id = s.prompt_id and t.tag_id = s.tag_id)`

/** Adds the staged tags that their prompts do not have yet. */
export const insertTags = `insert into prompt_tags (prompt_id, tag_id) select s.prompt_id, s.tag_id from ${fromMissingTags}`

export const insertUsers = `insert into users (id, email, must_reset_password)
  select s.id, s.email, s.must_reset_password from ${fromMissing("users")} order by s.id`

const fromUsersToReset = `users u join ${stagedTable("users")} s on s.id = u.id
  where s.must_reset_password and not u.must_reset_password`

/** Sets `must_reset_password` for the users whose staged row sets this field. */
export const updateUsers = `update users t set must_reset_password = true where not t.must_reset_password
  and t.id in (select u.id from ${fromUsersToReset} order by u.id for no key update of u)`

const fromDifferingKeys = `${stagedTable("api_keys")} s where t.id = s.id
  and (t.name <> s.name or (t.revoked_at is null and s.revoked_at is not null)
    or s.expires_at < coalesce(t.expires_at, 'infinity'))`

/** Renames keys, revokes keys, and makes keys expire earlier. An existing key keeps its hash, owner and workspace. */
export const updateKeys = `update api_keys t set name = s.name, revoked_at = coalesce(t.revoked_at, s.revoked_at),
    expires_at = least(t.expires_at, s.expires_at)
  from ${fromDifferingKeys}`

const fromDifferingName = `${stagedTable("workspaces")} s where t.id = s.id and t.name <> s.name`

export const renameWorkspace = `update workspaces t set name = s.name from ${fromDifferingName}`

const sumCounts = (clauses: ReadonlyArray<string>): string =>
  `(${clauses.map((clause) => `(select count(*) from ${clause})`).join(" + ")})::int`

const addedRows = [
  ...(["workspaces", "users", "api_keys", ...contentTables] as const).map(fromMissing),
  fromMissingTags
]
const changedRows = [
  `workspaces t, ${fromDifferingName}`,
  fromUsersToReset,
  `api_keys t, ${fromDifferingKeys}`,
  ...contentTables.map((table) => `${table} t, ${fromDifferingContent(table)}`)
]
const removedRows = [fromOtherTagsOfStagedPrompts, ...contentTables.map(fromOtherContent)]

/** Counts the rows that an import of the staged rows into workspace `$1` would write. */
export const countWrites = `select ${sumCounts(addedRows)} as added, ${sumCounts(changedRows)} as changed,
  ${sumCounts(removedRows)} as removed`

export const decodeCounts = makeFirstRowDecoder(
  Schema.Struct({ added: Schema.Int, changed: Schema.Int, removed: Schema.Int })
)
