import * as Schema from "effect/Schema"
import { maxProblems } from "../../../../application/formats/ProblemList.ts"
import { makeFirstRowDecoder, makeRowDecoder } from "../connection/RowDecoder.ts"
import { type ContentTable, contentColumns, type ImportTable, importColumns } from "./ContentTables.ts"
import type { FromStaged } from "./StagedRows.ts"

/** The lock of the imports and revisions of workspace `$1`, which nothing else takes. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"

/** Waits for the import lock of workspace `$1`. */
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`

/** Takes the import lock of workspace `$1` if it is free. */
export const tryLockWorkspace = `select pg_try_advisory_xact_lock(${lockKey}) as locked`

/** Decodes the row of `tryLockWorkspace`. */
export const decodeTryLock = makeFirstRowDecoder(Schema.Struct({ locked: Schema.Boolean }))

/** Locks the prompts `$1` against changes until the transaction ends. */
export const lockPrompts = "select from prompts where id = any($1::uuid[]) order by id for no key update"

/** Constraints are checked at the end, because rows may swap names, numbers and parents. */
export const deferConstraints = "set constraints all deferred"
export const checkConstraints = "set constraints all immediate"

/** Joins a row `t` of content to the prompt, if any, whose workspace it belongs to. */
const joinWorkspace = (table: ContentTable): { readonly join: string; readonly workspace: string } =>
  "workspace_id" in contentColumns[table]
    ? { join: "", workspace: "t.workspace_id" }
    : { join: "join prompts p on p.id = t.prompt_id", workspace: "p.workspace_id" }

/** Selects the first conflicts of a query in the order of the import, each with the number of all its conflicts. */
const firstConflicts = (conflicts: string): string =>
  `select path, by_id, (count(*) over ())::int as count from (${conflicts}) c
    order by place, by_id desc limit ${maxProblems}`

/** Selects the first staged rows whose ids belong to another workspace than `$1`. */
export const findConflictingIds = (from: FromStaged, table: ContentTable): string => {
  const { join, workspace } = joinWorkspace(table)
  return firstConflicts(`select s.path, s.place, true as by_id
    from ${from(table)} s join ${table} t on t.id = s.id ${join}
    where ${workspace} <> $1`)
}

/** Selects the first staged users whose id or email belongs to another user. */
export const findConflictingUsers = (from: FromStaged): string =>
  firstConflicts(`select s.path, s.place, u.id = s.id as by_id
    from ${from("users")} s join users u on u.id = s.id
    where lower(u.email) <> lower(s.email)
    union all
    select s.path, s.place, false
    from ${from("users")} s join users u on lower(u.email) = lower(s.email)
    where u.id <> s.id`)

/** Selects the first staged keys whose id belongs to another workspace than `$1`, or whose hash to another key. */
export const findConflictingKeys = (from: FromStaged): string =>
  firstConflicts(`select s.path, s.place, true as by_id
    from ${from("api_keys")} s join api_keys k on k.id = s.id
    where k.workspace_id <> $1
    union all
    select s.path, s.place, false
    from ${from("api_keys")} s join api_keys k on k.key_hash = s.key_hash
    where k.id <> s.id`)

/** Decodes the rows of the queries for conflicts; `by_id` is true if the id conflicts. */
export const decodeConflicts = makeRowDecoder(
  Schema.Struct({ path: Schema.String, by_id: Schema.Boolean, count: Schema.Int })
)

/** Updates the rows that differ from the staged ones; an equal row is not locked. */
export const updateContent = (from: FromStaged, table: ContentTable): string => {
  const columns = Object.keys(contentColumns[table]).filter(
    (name) => name !== "id" && name !== "workspace_id"
  )
  const sameWorkspace = "workspace_id" in contentColumns[table] ? "and t.workspace_id = s.workspace_id" : ""
  return `update ${table} t set ${columns.map((name) => `${name} = s.${name}`)}
    from ${from(table)} s where t.id = s.id ${sameWorkspace}
    and (${columns.map((name) => `t.${name}`)}) is distinct from (${columns.map((name) => `s.${name}`)})`
}

/** Adds the staged rows that do not exist. Fails if another transaction adds one of them at the same time. */
export const insertMissing = (from: FromStaged, table: ImportTable): string => {
  const columns = Object.keys(importColumns[table])
  return `insert into ${table} (${columns}) select ${columns.map((name) => `s.${name}`)} from ${from(table)} s
    where not exists (select from ${table} t where t.id = s.id)`
}

/** Deletes the rows of workspace `$1` that are not staged. */
export const deleteOtherContent = (from: FromStaged, table: ContentTable): string => {
  const { join, workspace } = joinWorkspace(table)
  return `delete from ${table} where id in (
    select t.id from ${table} t ${join}
    where ${workspace} = $1 and not exists (select from ${from(table)} s where s.id = t.id)
  )`
}

const deleteOtherTags = (prompts: string, from: FromStaged): string => `delete from prompt_tags t
  where t.prompt_id ${prompts} and not exists (
    select from ${from("prompt_tags")} s where s.prompt_id = t.prompt_id and s.tag_id = t.tag_id
  )`

/** Deletes the tags of the staged prompts that are not staged. */
export const deleteOtherTagsOfStagedPrompts = (from: FromStaged): string =>
  deleteOtherTags(`in (select s.id from ${from("prompts")} s)`, from)

/** Deletes the tags of prompts `$1` that are not staged. */
export const deleteOtherTagsOfPrompts = (from: FromStaged): string =>
  deleteOtherTags("= any($1::uuid[])", from)

/** Deletes the fragment bindings of prompts `$1` that are not staged. */
export const deleteOtherBindingsOfPrompts = (from: FromStaged): string =>
  `delete from prompt_fragments t where t.prompt_id = any($1::uuid[])
    and not exists (select from ${from("prompt_fragments")} s where s.id = t.id)`

/** Deletes the fragments `$1` of workspace `$2`. */
export const deleteFragments = "delete from fragments where id = any($1::uuid[]) and workspace_id = $2"

/** Adds the staged tags that the prompts do not have. */
export const insertTags = (from: FromStaged): string => `insert into prompt_tags (prompt_id, tag_id)
  select s.prompt_id, s.tag_id from ${from("prompt_tags")} s
  where not exists (select from prompt_tags t where t.prompt_id = s.prompt_id and t.tag_id = s.tag_id)`

/** Adds the staged users that do not exist. */
export const insertUsers = (from: FromStaged): string => `insert into users (id, email, must_reset_password)
  select s.id, s.email, s.must_reset_password from ${from("users")} s
  where not exists (select from users t where t.id = s.id) order by s.id`

/** Makes users reset their passwords if the staged users must. An import never lifts a reset. */
export const updateUsers = (from: FromStaged): string =>
  `update users t set must_reset_password = true where not t.must_reset_password
  and t.id in (
    select u.id from users u join ${from("users")} s on s.id = u.id
    where s.must_reset_password and not u.must_reset_password order by u.id for no key update of u
  )`

/** Renames and revokes keys. An existing key keeps its hash, owner and workspace, and stays revoked. */
export const updateKeys = (from: FromStaged): string =>
  `update api_keys t set name = s.name, revoked_at = coalesce(t.revoked_at, s.revoked_at)
  from ${from("api_keys")} s where t.id = s.id
  and (t.name <> s.name or (t.revoked_at is null and s.revoked_at is not null))`

/** Renames the workspace. An existing workspace keeps its tier and billing status. */
export const renameWorkspace = (from: FromStaged): string =>
  `update workspaces t set name = s.name from ${from("workspaces")} s
  where t.id = s.id and t.name <> s.name`
