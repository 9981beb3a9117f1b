import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type Archive, type ArchivePart, BadArchive, type Fault, partsOf } from "../../application/Archive.ts"
import type { ContentEdit } from "../../application/WorkspaceContent.ts"
import {
  type ArchiveTable,
  archiveColumns,
  archiveTables,
  type ContentTable,
  childRows,
  contentColumns,
  contentTables,
  rowsOf,
  tagRows
} from "./archiveRows.ts"
import { reasonOf, sqlState } from "./Database.ts"
import { makeRowSpool, type RowSpool } from "./rowSpool.ts"

/** Imports of one workspace take turns at this lock, which nothing else takes. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`
export const tryLockWorkspace = `select pg_try_advisory_xact_lock(${lockKey}) as locked`

/**
 * Where the statements of an import find its rows, which no other connection sees: a subquery or table, by table. Neither
 * kind locks a row.
 */
type Staged = (table: ArchiveTable) => string

const typesOf = (table: ArchiveTable): string =>
  [...Object.entries(archiveColumns[table]), ["path", "text"], ["place", "integer"]]
    .map((column) => column.join(" "))
    .join(", ")

/** The columns of the rows of a JSON text, which writes a hash in hexadecimal. */
const columnsOf = (table: ArchiveTable): ReadonlyArray<string> =>
  [...Object.keys(archiveColumns[table]), "path", "place"].map((name) =>
    name === "key_hash" ? "decode(key_hash, 'hex') as key_hash" : name
  )

const prefix = "prompt_retrieval_staged_"

/** Temporary tables, for imports of any size. */
const inTables: Staged = (table) => `pg_temp.${prefix}${table}`

/**
 * Creates the temporary table for a table, with the same CHECK constraints. Emails are unique as in `users`, where
 * lower case is PostgreSQL's; the archive's reader has compared everything else.
 */
const createTable = (table: ArchiveTable): string => `
  create temporary table ${prefix}${table} (
    like ${table} including constraints including defaults, path text, place integer
  ) on commit drop;
  ${table === "users" ? `create unique index users_email on ${inTables("users")} (lower(email));` : ""}`

const insertRows = (table: ArchiveTable): string =>
  `insert into ${inTables(table)} (${Object.keys(archiveColumns[table])}, path, place)
    select ${columnsOf(table)} from json_to_recordset($1::json) r (${typesOf(table)})`

/** Settings of the transaction, for small imports: ten temporary tables cost more than the rest of the import. */
const inSettings: Staged = (table) =>
  `(select ${columnsOf(table)}
    from json_to_recordset(current_setting('prompt_retrieval.staged_${table}')::json) r (${typesOf(table)}))`

const setSettings = (tables: ReadonlyArray<ArchiveTable>): string =>
  `select ${tables.map((table, i) => `set_config('prompt_retrieval.staged_${table}', $${i + 1}, true)`)}`

/** Classes 22 and 23: a value that PostgreSQL can't hold or that a constraint forbids, which the domain had let pass. */
const isRefusal = (error: unknown): error is SqlError => isSqlError(error) && /^2[23]/.test(sqlState(error))
const refusal = (error: SqlError): BadArchive =>
  BadArchive([{ path: "", message: `can't be stored: ${reasonOf(error).replaceAll(`"${prefix}`, '"')}` }])

/** A concurrent transaction got in the way: the import can be tried again. */
export const Raced = { _tag: "Raced" } as const
export type Raced = typeof Raced

/** A row that another transaction added, deleted or changed, or a deadlock with it. */
const raced = /^(23503|23505|40001|40P01)$/

/** Turns errors of the import's statements into a refusal, or into `Raced` where another attempt is left. */
export const refuseOrRetry =
  (isLast: boolean) =>
  <A, E, R>(
    work: Effect.Effect<A, E | SqlError, R>
  ): Effect.Effect<A, E | SqlError | BadArchive | Raced, R> =>
    Effect.catchIf(
      work,
      (error): error is SqlError => isSqlError(error),
      (error): Effect.Effect<never, SqlError | BadArchive | Raced> => {
        if (!isLast && raced.test(sqlState(error))) return Effect.fail(Raced)
        return Effect.fail(isRefusal(error) ? refusal(error) : error)
      }
    ) as never

/** No row of a table, for statements that need one staged whether it has rows or not. */
const noRows = (table: ArchiveTable): string =>
  `(select ${Object.entries(archiveColumns[table]).map(([name, type]) => `null::${type} as ${name}`)} where false)`

/** The longest import that is staged in settings, in characters of JSON. */
const maxLengthInSettings = 128 * 1024

/** The staged rows of an import, and the tables that have any. */
interface Rows {
  readonly staged: Staged
  readonly tables: ReadonlyArray<ArchiveTable>
}

/**
 * Stages the rows of a spool. Only in temporary tables a value that a table can't hold is found here, so that a dry run
 * uses them whatever the size.
 */
const stage = Effect.fnUntraced(function* (sql: PgClient.PgClient, spool: RowSpool, dryRun: boolean) {
  const tables = archiveTables.filter(spool.has)
  const rowsIn = (staged: Staged): Rows => ({
    staged: (table) => (spool.has(table) ? staged(table) : noRows(table)),
    tables
  })
  if (tables.length === 0) return rowsIn(noRows)
  if (!dryRun && spool.length() <= maxLengthInSettings) {
    const texts = new Map<ArchiveTable, string>()
    yield* spool.useEach(({ table, json }) => Effect.sync(() => void texts.set(table, json)))
    yield* sql.unsafe(
      setSettings(tables),
      tables.map((table) => texts.get(table))
    )
    return rowsIn(inSettings)
  }
  yield* Effect.gen(function* () {
    yield* sql.unsafe(`do $$ begin ${tables.map(createTable).join("")} end $$`)
    yield* spool.useEach(({ table, json }) => sql.unsafe(insertRows(table), [json]))
    // The columns of joins suffice to plan the statements after this.
    const joined = (table: ArchiveTable) => (table === "prompt_tags" ? "prompt_id, tag_id" : "id")
    yield* sql.unsafe(`analyze ${tables.map((table) => `${inTables(table)} (${joined(table)})`)}`)
  }).pipe(Effect.catchIf(isRefusal, (error) => Effect.fail(refusal(error))))
  return rowsIn(inTables)
})

/** Joins a row of content to the prompt, if any, whose workspace has it. */
const owner = (table: ContentTable): { readonly join: string; readonly workspace: string } =>
  "workspace_id" in contentColumns[table]
    ? { join: "", workspace: "t.workspace_id" }
    : { join: "join prompts p on p.id = t.prompt_id", workspace: "p.workspace_id" }

/** Staged rows whose ids other workspaces have. */
const idsOfOthers = (staged: Staged, table: ContentTable): string => {
  const { join, workspace } = owner(table)
  return `select s.path from ${staged(table)} s join ${table} t on t.id = s.id ${join}
    where ${workspace} <> $1 order by s.place`
}

const otherUsers = (staged: Staged): string => `select s.path, s.place, u.id = s.id as by_id
  from ${staged("users")} s join users u on u.id = s.id
  where lower(u.email) <> lower(s.email)
  union all
  select s.path, s.place, false
  from ${staged("users")} s join users u on lower(u.email) = lower(s.email)
  where u.id <> s.id
  order by place, by_id desc`

const otherKeys = (staged: Staged): string => `select s.path, s.place, true as by_id
  from ${staged("api_keys")} s join api_keys k on k.id = s.id
  where k.workspace_id <> $1
  union all
  select s.path, s.place, false
  from ${staged("api_keys")} s join api_keys k on k.key_hash = s.key_hash
  where k.id <> s.id
  order by place, by_id desc`

interface Conflict {
  readonly path: string
  readonly by_id: boolean
}

const fault = (path: string, owner: string): Fault => ({ path, message: `is another ${owner}` })

/** Fails with every staged row that belongs to another workspace, user or key. */
const refuseConflicts = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { staged, tables }: Rows,
  workspace: string
) {
  const faults: Array<Fault> = []
  if (tables.includes("users")) {
    for (const { path, by_id } of yield* sql.unsafe<Conflict>(otherUsers(staged)))
      faults.push(fault(`${path}.${by_id ? "id" : "email"}`, "user's"))
  }
  if (tables.includes("api_keys")) {
    for (const { path, by_id } of yield* sql.unsafe<Conflict>(otherKeys(staged), [workspace]))
      faults.push(by_id ? fault(`${path}.id`, "workspace's") : fault(`${path}.key_hash`, "key's"))
  }
  for (const table of contentTables.filter((table) => tables.includes(table))) {
    for (const { path } of yield* sql.unsafe<Conflict>(idsOfOthers(staged, table), [workspace]))
      faults.push(fault(`${path}.id`, "workspace's"))
  }
  if (faults.length > 0) return yield* Effect.fail(BadArchive(faults))
})

/** Updates the rows that differ from the staged ones; a row that does not differ is not locked. */
const updateContent = (staged: Staged, table: ContentTable): string => {
  const changeable = Object.keys(contentColumns[table]).filter(
    (name) => name !== "id" && name !== "workspace_id"
  )
  const isOwn = "workspace_id" in contentColumns[table] ? "and t.workspace_id = s.workspace_id" : ""
  return `update ${table} t set ${changeable.map((name) => `${name} = s.${name}`)}
    from ${staged(table)} s where t.id = s.id ${isOwn}
    and (${changeable.map((name) => `t.${name}`)}) is distinct from (${changeable.map((name) => `s.${name}`)})`
}

/** Adds the staged rows that are not there. A row that another transaction adds meanwhile is an error. */
const insertContent = (staged: Staged, table: ArchiveTable): string => {
  const names = Object.keys(archiveColumns[table])
  return `insert into ${table} (${names}) select ${names.map((name) => `s.${name}`)} from ${staged(table)} s
    where not exists (select from ${table} t where t.id = s.id)`
}

/** Deletes what a workspace has of a table and the import has not. */
const deleteOthers = (staged: Staged, table: ContentTable): string => {
  const { join, workspace } = owner(table)
  return `delete from ${table} where id in (
    select t.id from ${table} t ${join}
    where ${workspace} = $1 and not exists (select from ${staged(table)} s where s.id = t.id)
  )`
}

/** Deletes the tags of these prompts that are not staged. */
const deleteOtherTags = (prompts: string, from: string): string => `delete from prompt_tags t
  where t.prompt_id ${prompts} and not exists (
    select from ${from} s where s.prompt_id = t.prompt_id and s.tag_id = t.tag_id
  )`

const insertTags = (staged: Staged): string => `insert into prompt_tags (prompt_id, tag_id)
  select s.prompt_id, s.tag_id from ${staged("prompt_tags")} s
  where not exists (select from prompt_tags t where t.prompt_id = s.prompt_id and t.tag_id = s.tag_id)`

/** Updates and adds the staged rows of content. */
const writeContent = Effect.fnUntraced(function* (sql: PgClient.PgClient, { staged, tables }: Rows) {
  for (const table of contentTables.filter((table) => tables.includes(table))) {
    yield* sql.unsafe(updateContent(staged, table))
    yield* sql.unsafe(insertContent(staged, table))
  }
})

const updateUsers = (
  staged: Staged
): string => `update users t set must_reset_password = true where not t.must_reset_password
  and t.id in (
    select u.id from users u join ${staged("users")} s on s.id = u.id
    where s.must_reset_password and not u.must_reset_password order by u.id for no key update of u
  )`

const insertUsers = (staged: Staged): string => `insert into users (id, email, must_reset_password)
  select s.id, s.email, s.must_reset_password from ${staged("users")} s
  where not exists (select from users t where t.id = s.id) order by s.id`

/** A key that is there keeps its hash, owner and workspace, and stays revoked. */
const updateKeys = (
  staged: Staged
): string => `update api_keys t set name = s.name, revoked_at = coalesce(t.revoked_at, s.revoked_at)
  from ${staged("api_keys")} s where t.id = s.id
  and (t.name <> s.name or (t.revoked_at is null and s.revoked_at is not null))`

const renameWorkspace = (
  staged: Staged
): string => `update workspaces t set name = s.name from ${staged("workspaces")} s
  where t.id = s.id and t.name <> s.name`

/** All rows of an archive, read to its end before the database is used. */
export const spoolArchive: <E = never>(
  source: Archive | Stream.Stream<ArchivePart, E>
) => Effect.Effect<{ readonly workspace: string; readonly spool: RowSpool }, E, Scope.Scope> =
  Effect.fnUntraced(function* <E>(source: Archive | Stream.Stream<ArchivePart, E>) {
    const spool = yield* makeRowSpool
    const counts = new Map<ArchivePart["list"], number>()
    let workspace = ""
    const parts: Stream.Stream<ArchivePart, E> = Stream.isStream(source)
      ? (source as Stream.Stream<ArchivePart, E>)
      : Stream.fromIterable(partsOf(source as Archive))
    yield* Stream.runForEachArray(
      parts,
      Effect.fnUntraced(function* (some) {
        for (const part of some) {
          if (part.list === "workspace") workspace = part.item.id
          const index = counts.get(part.list) ?? 0
          counts.set(part.list, index + 1)
          yield* spool.add(rowsOf(workspace, part, index))
        }
      })
    )
    return { workspace, spool }
  })

/**
 * Makes a workspace what an archive says, in a transaction of `sql`. Rows of other workspaces are only read, and users,
 * keys and the workspace's own row, whose owners never wait for an import, are written right before the end.
 */
export const importArchive = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { workspace, spool }: { readonly workspace: string; readonly spool: RowSpool },
  dryRun: boolean
) {
  const rows = yield* stage(sql, spool, dryRun)
  const { staged } = rows
  if (!dryRun) yield* sql.unsafe(lockWorkspace, [workspace])
  yield* refuseConflicts(sql, rows, workspace)
  if (dryRun) return

  // Rows may swap names, numbers and parents, so constraints are checked at the end.
  yield* sql`set constraints all deferred`
  yield* sql.unsafe(insertContent(staged, "workspaces"))
  yield* writeContent(sql, rows)
  if (spool.has("prompts")) {
    yield* sql.unsafe(deleteOtherTags(`in (select s.id from ${staged("prompts")} s)`, staged("prompt_tags")))
    if (spool.has("prompt_tags")) yield* sql.unsafe(insertTags(staged))
  }
  for (const table of contentTables.toReversed()) yield* sql.unsafe(deleteOthers(staged, table), [workspace])
  yield* sql`set constraints all immediate`

  if (spool.has("users")) yield* sql.unsafe(insertUsers(staged))
  if (spool.has("api_keys")) yield* sql.unsafe(insertContent(staged, "api_keys"))
  if (spool.has("users")) yield* sql.unsafe(updateUsers(staged))
  if (spool.has("api_keys")) yield* sql.unsafe(updateKeys(staged))
  yield* sql.unsafe(renameWorkspace(staged))
})

/** The rows of an edit; paths are places in the edit. */
const spoolEdit = Effect.fnUntraced(function* (workspace: string, edit: ContentEdit) {
  const spool = yield* makeRowSpool
  for (const list of ["folders", "tags", "fragments"] as const) {
    for (const [index, item] of edit[list].entries()) {
      yield* spool.add(rowsOf(workspace, { list, item } as ArchivePart, index))
    }
  }
  for (const [index, { row, tags, fragments, version }] of edit.prompts.entries()) {
    const path = `prompts[${index}]`
    yield* spool.add([
      { table: "prompts", path, row: { ...row, workspace_id: workspace } },
      ...tagRows(path, row.id, tags ?? []),
      ...childRows(path, row.id, "fragments", fragments ?? []),
      ...childRows(path, row.id, "versions", version === undefined ? [] : [version])
    ])
  }
  return spool
})

/** Writes an edit of a workspace's content, in a transaction of `sql`, and no row that the edit does not name. */
export const writeEdit = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  workspace: string,
  edit: ContentEdit,
  dryRun: boolean
) {
  const spool = yield* spoolEdit(workspace, edit)
  const rows = yield* stage(sql, spool, dryRun)
  const { staged } = rows
  yield* refuseConflicts(sql, rows, workspace)
  if (dryRun) return

  yield* sql`set constraints all deferred`
  yield* writeContent(sql, rows)
  const promptsWith = (list: "tags" | "fragments") =>
    edit.prompts.filter((prompt) => prompt[list] !== undefined).map(({ row }) => row.id)
  const [tagged, composed] = [promptsWith("tags"), promptsWith("fragments")]
  if (tagged.length > 0) {
    yield* sql.unsafe(deleteOtherTags("= any($1::uuid[])", staged("prompt_tags")), [tagged])
  }
  if (spool.has("prompt_tags")) yield* sql.unsafe(insertTags(staged))
  if (composed.length > 0) {
    yield* sql.unsafe(
      `delete from prompt_fragments t where t.prompt_id = any($1::uuid[])
        and not exists (select from ${staged("prompt_fragments")} s where s.id = t.id)`,
      [composed]
    )
  }
  if (edit.removedFragments.length > 0) {
    yield* sql.unsafe("delete from fragments where id = any($1::uuid[]) and workspace_id = $2", [
      edit.removedFragments,
      workspace
    ])
  }
  yield* sql`set constraints all immediate`
})
