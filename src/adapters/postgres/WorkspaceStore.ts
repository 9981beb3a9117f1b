import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import {
  type Archive,
  type ArchivePart,
  archiveOf,
  BadArchive,
  type Fault
} from "../../application/Archive.ts"
import {
  type KeyInfo,
  KeyNotFound,
  type UserInfo,
  UserNotFound,
  type WorkspaceInfo,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../application/WorkspaceStore.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import {
  type ArchiveRow,
  type Columns,
  type ContentTable,
  contentColumns,
  contentRows,
  contentTables
} from "./archiveRows.ts"
import { Database, reasonOf, sqlState } from "./Database.ts"
import { exportArchive } from "./exportArchive.ts"

/** Imports take their turn at this lock, so that what one has checked stays true until it is done. */
const lock = "select pg_advisory_xact_lock(hashtext('prompt_retrieval_import'))"

/** How much goes into one statement. */
const maxBatchRows = 5_000
const maxBatchLength = 4 * 1024 * 1024

/** Rows as JSON arrays, each for one statement. */
function* batches(rows: Iterable<object>): Generator<string> {
  let batch: Array<string> = []
  let length = 0
  for (const row of rows) {
    const json = JSON.stringify(row)
    batch.push(json)
    length += json.length
    if (batch.length === maxBatchRows || length >= maxBatchLength) {
      yield `[${batch.join(",")}]`
      batch = []
      length = 0
    }
  }
  if (batch.length > 0) yield `[${batch.join(",")}]`
}

const recordset = (columns: Columns): string =>
  `json_to_recordset($1::json) r (${Object.entries(columns).map((column) => column.join(" "))})`

/** Adds rows and replaces those that differ; what is as it should be is not written again. */
const upsert = (table: string, columns: Columns): string => {
  const names = Object.keys(columns)
  const changeable = names.filter((name) => name !== "id" && name !== "workspace_id")
  const news = changeable.map((name) => `excluded.${name}`)
  return `insert into ${table} as t (${names}) select ${names} from ${recordset(columns)}
    on conflict (id) do update set (${changeable}) = row(${news})
    where (${changeable.map((name) => `t.${name}`)}) is distinct from (${news})`
}

const upsertWorkspace = `insert into workspaces as t (id, name, tier, billing_status) values ($1, $2, $3, $4)
  on conflict (id) do update set name = excluded.name where t.name <> excluded.name`

const upsertUsers = `insert into users as t (id, email, must_reset_password)
  select * from ${recordset({ id: "uuid", email: "text", must_reset_password: "boolean" })}
  on conflict (id) do update set must_reset_password = true
  where excluded.must_reset_password and not t.must_reset_password`

/** A key that is there keeps its hash, owner and workspace, and stays revoked. */
const upsertKeys = `insert into api_keys as t
    (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at, revoked_at)
  select id, workspace_id, created_by, name, decode(key_hash, 'hex'), key_start, key_end, created_at, revoked_at
  from ${recordset({
    id: "uuid",
    workspace_id: "uuid",
    created_by: "uuid",
    name: "text",
    key_hash: "text",
    key_start: "text",
    key_end: "text",
    created_at: "timestamptz",
    revoked_at: "timestamptz"
  })}
  on conflict (id) do update
  set name = excluded.name, revoked_at = coalesce(t.revoked_at, excluded.revoked_at)
  where t.name <> excluded.name or (t.revoked_at is null and excluded.revoked_at is not null)`

/** Joins a row of content to the workspace that has it. */
const inWorkspace = (table: ContentTable): string =>
  "workspace_id" in contentColumns[table]
    ? `${table} t join workspaces w on w.id = t.workspace_id`
    : `${table} t join prompts p on p.id = t.prompt_id join workspaces w on w.id = p.workspace_id`

/** Deletes what a workspace has of a table, but for these ids. */
const deleteOthers = (table: ContentTable): string =>
  `delete from ${table} where id in (
    select t.id from ${inWorkspace(table)}
    where w.id = $1 and not exists (select from unnest($2::uuid[]) kept (id) where kept.id = t.id)
  )`

const deleteOtherTags = `delete from prompt_tags where (prompt_id, tag_id) in (
    select t.prompt_id, t.tag_id from prompt_tags t join prompts p on p.id = t.prompt_id
    where p.workspace_id = $1 and not exists (
      select from unnest($2::uuid[], $3::uuid[]) kept (prompt_id, tag_id)
      where kept.prompt_id = t.prompt_id and kept.tag_id = t.tag_id
    )
  )`

const insertTags = `insert into prompt_tags (prompt_id, tag_id)
  select * from unnest($1::uuid[], $2::uuid[]) on conflict do nothing`

/** Which of these are taken, by their place in the array. */
const idsOfOthers = (table: ContentTable): string =>
  `select i.n::int from unnest($2::uuid[]) with ordinality i (id, n) join ${inWorkspace(table)} on t.id = i.id
  where w.id <> $1 order by i.n`

const otherUsers = `select i.n::int, u.id = i.id as by_id
  from unnest($1::uuid[], $2::text[]) with ordinality i (id, email, n) join users u on u.id = i.id
  where lower(u.email) <> lower(i.email)
  union all
  select i.n::int, false
  from unnest($1::uuid[], $2::text[]) with ordinality i (id, email, n) join users u on lower(u.email) = lower(i.email)
  where u.id <> i.id
  order by n, by_id desc`

const otherKeys = `select i.n::int, true as by_id
  from unnest($2::uuid[]) with ordinality i (id, n) join api_keys k on k.id = i.id
  where k.workspace_id <> $1
  union all
  select i.n::int, false
  from unnest($2::uuid[], $3::text[]) with ordinality i (id, key_hash, n)
  join api_keys k on k.key_hash = decode(i.key_hash, 'hex')
  where k.id <> i.id
  order by n, by_id desc`

interface Conflict {
  /** Counts from 1. */
  readonly n: number
  readonly by_id: boolean
}

const fault = (path: string, owner: string): Fault => ({ path, message: `is another ${owner}` })

/** What in an archive belongs to another workspace, user or key, with the path of each (DESIGN.md section 9). */
const conflicts = Effect.fnUntraced(function* (sql: PgClient.PgClient, archive: Archive) {
  const { workspace, users, api_keys } = archive
  const ofUsers = yield* sql.unsafe<Conflict>(otherUsers, [
    users.map(({ id }) => id),
    users.map(({ email }) => email)
  ])
  const ofKeys = yield* sql.unsafe<Conflict>(otherKeys, [
    workspace.id,
    api_keys.map(({ id }) => id),
    api_keys.map(({ key_hash }) => key_hash)
  ])
  const ofContent = yield* Effect.forEach(contentTables, (table) => {
    const rows = Array.from(contentRows[table](archive), ({ path, row }) => ({ path, id: row.id }))
    return Effect.map(
      sql.unsafe<{ readonly n: number }>(idsOfOthers(table), [workspace.id, rows.map(({ id }) => id)]),
      (taken) => taken.map(({ n }) => fault(`${rows[n - 1]!.path}.id`, "workspace's"))
    )
  })
  return [
    ...ofUsers.map(({ n, by_id }) => fault(`users[${n - 1}].${by_id ? "id" : "email"}`, "user's")),
    ...ofKeys.map(({ n, by_id }) =>
      by_id ? fault(`api_keys[${n - 1}].id`, "workspace's") : fault(`api_keys[${n - 1}].key_hash`, "key's")
    ),
    ...ofContent.flat()
  ]
})

/** What a dry run fails with in the end, so that its transaction is undone. */
const DryRun = { _tag: "DryRun" } as const
const isDryRun = (error: unknown): error is typeof DryRun => error === DryRun

/** Runs an import in a transaction, which a dry run undoes in the end. */
const unlessDry = <A, E>(
  transact: Database["Service"]["transact"],
  work: Effect.Effect<A, E | SqlError>,
  options: { readonly dryRun: boolean } | undefined
) => {
  let result: A
  return transact(
    work.pipe(
      Effect.catchIf(isRefusal, (error) => Effect.fail(refusal(error as SqlError))),
      Effect.flatMap((value) => {
        result = value
        return options?.dryRun === true ? Effect.fail(DryRun) : Effect.succeed(value)
      })
    )
  ).pipe(Effect.catchIf(isDryRun, () => Effect.succeed(result)))
}

/** All the statements of a transaction see the state at the first. */
const oneState = "set transaction isolation level repeatable read, read only"

/** Classes 22 and 23: a value that PostgreSQL can't hold or that a constraint forbids, which the domain had let pass. */
const isRefusal = (error: unknown): error is SqlError => isSqlError(error) && /^2[23]/.test(sqlState(error))
const refusal = (error: SqlError): BadArchive =>
  BadArchive([{ path: "", message: `can't be stored: ${reasonOf(error)}` }])

function* rowsOf(archive: Archive, table: ContentTable): Generator<ArchiveRow["row"]> {
  for (const { row } of contentRows[table](archive)) yield row
}

const importArchive = Effect.fnUntraced(function* (sql: PgClient.PgClient, archive: Archive) {
  yield* sql.unsafe(lock)
  const faults = yield* conflicts(sql, archive)
  if (faults.length > 0) return yield* Effect.fail(BadArchive(faults))
  const write = Effect.fnUntraced(function* (text: string, rows: Iterable<object>) {
    for (const batch of batches(rows)) yield* sql.unsafe(text, [batch])
  })

  // Names, numbers and parents may change hands among the rows: what holds of them holds at the end.
  yield* sql`set constraints all deferred`
  const { id, name, tier, billing_status } = archive.workspace
  yield* sql.unsafe(upsertWorkspace, [id, name, tier, billing_status])
  yield* write(upsertUsers, archive.users)
  yield* write(upsertKeys, archive.api_keys)

  const tagged = archive.prompts.flatMap((prompt) => prompt.tags.map((tag) => [prompt.id, tag] as const))
  const tagRows = [tagged.map(([prompt]) => prompt), tagged.map(([, tag]) => tag)]
  yield* sql.unsafe(deleteOtherTags, [id, ...tagRows])
  for (const table of contentTables.toReversed()) {
    yield* sql.unsafe(deleteOthers(table), [id, Array.from(rowsOf(archive, table), ({ id }) => id)])
  }
  for (const table of contentTables) {
    yield* write(upsert(table, contentColumns[table]), rowsOf(archive, table))
  }
  yield* sql.unsafe(insertTags, tagRows)
  yield* sql`set constraints all immediate`
})

/** Others may read, and wait to write. */
const lockContent = `lock table ${[...contentTables, "prompt_tags"]} in share row exclusive mode`

const reviseArchive = Effect.fnUntraced(function* <A, E>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  revise: (archive: Archive) => Effect.Effect<readonly [Archive, A], E>
) {
  yield* sql.unsafe(lock)
  yield* sql.unsafe(lockContent)
  const parts: Array<ArchivePart> = []
  yield* exportArchive(sql, workspace, (some) => Effect.sync(() => void parts.push(...some)))
  const [revised, result] = yield* revise(archiveOf(parts))
  yield* importArchive(sql, revised)
  return result
})

const addKey = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  ...[workspace, owner, key]: Parameters<WorkspaceStore["Service"]["addKey"]>
) {
  const found = yield* sql`select from workspaces where id = ${workspace} for key share`
  if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
  yield* sql`insert into users (id, email) values (${owner.newUserId}, ${owner.email})
    on conflict (lower(email)) do nothing`
  yield* sql`insert into api_keys (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at)
    select ${key.id}, ${workspace}, u.id, ${key.name}, decode(${key.key_hash}, 'hex'), ${key.key_start},
      ${key.key_end}, ${key.created_at}
    from users u where lower(u.email) = lower(${owner.email})`
})

const workspaceColumns = "id, name, tier, billing_status"
const userColumns = "id, email, must_reset_password"
const keyColumns = `k.id, k.name, k.key_start, k.key_end, u.email as owner, k.created_at, k.last_used_at, k.revoked_at`

/** Finds out whether there is a workspace, and no more where there isn't. */
const existing = Effect.fnUntraced(function* (
  { read }: Database["Service"],
  workspace: WorkspaceId,
  text: string
) {
  const found = yield* read({ text: "select from workspaces where id = $1", params: [workspace] })
  if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
  return yield* read({ text, params: [workspace] })
})

const workspaces = { text: `select ${workspaceColumns} from workspaces order by id`, params: [] }
const usersOf = `select ${userColumns} from users u
  where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1) order by id`
const keysOf = `select ${keyColumns} from api_keys k join users u on u.id = k.created_by
  where k.workspace_id = $1 order by k.id`

const setWorkspace = `update workspaces
  set tier = coalesce($2, tier), billing_status = coalesce($3, billing_status)
  where id = $1 returning ${workspaceColumns}`
const setUser = `update users set must_reset_password = $2 where lower(email) = lower($1) returning ${userColumns}`
const revokeKey = `update api_keys k set revoked_at = coalesce(k.revoked_at, $2)
  from users u where k.id = $1 and u.id = k.created_by returning ${keyColumns}`

/** The row that a change gives, or that there is nothing to change. */
const changed = <A extends object, E>(
  sql: PgClient.PgClient,
  text: string,
  params: ReadonlyArray<unknown>,
  notFound: E
): Effect.Effect<A, E | SqlError> =>
  Effect.flatMap(sql.unsafe<A>(text, params), ([row]) =>
    row === undefined ? Effect.fail(notFound) : Effect.succeed(row)
  )

/** What operators change, in PostgreSQL. */
export const layer: Layer.Layer<WorkspaceStore, never, Database | PgClient.PgClient> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const database = yield* Database
    const { read, transact } = database
    const sql = yield* PgClient.PgClient
    return WorkspaceStore.of({
      workspaces: Effect.map(read(workspaces), (rows) => rows as unknown as ReadonlyArray<WorkspaceInfo>),
      addWorkspace: Effect.fn("WorkspaceStore.addWorkspace")(({ id, name, tier, billing_status }) =>
        transact(
          sql.unsafe(`insert into workspaces (${workspaceColumns}) values ($1, $2, $3, $4)`, [
            id,
            name,
            tier,
            billing_status
          ])
        )
      ),
      setWorkspace: Effect.fn("WorkspaceStore.setWorkspace")((id, { tier, billing_status }) =>
        transact(
          changed<WorkspaceInfo, WorkspaceNotFound>(
            sql,
            setWorkspace,
            [id, tier ?? null, billing_status ?? null],
            WorkspaceNotFound
          )
        )
      ),
      users: Effect.fn("WorkspaceStore.users")((id) =>
        Effect.map(existing(database, id, usersOf), (rows) => rows as unknown as ReadonlyArray<UserInfo>)
      ),
      setUser: Effect.fn("WorkspaceStore.setUser")((email, must_reset_password) =>
        transact(changed<UserInfo, UserNotFound>(sql, setUser, [email, must_reset_password], UserNotFound))
      ),
      keys: Effect.fn("WorkspaceStore.keys")((id) =>
        Effect.map(existing(database, id, keysOf), (rows) => rows as unknown as ReadonlyArray<KeyInfo>)
      ),
      revokeKey: Effect.fn("WorkspaceStore.revokeKey")((id, at) =>
        transact(changed<KeyInfo, KeyNotFound>(sql, revokeKey, [id, at], KeyNotFound))
      ),
      importArchive: Effect.fn("WorkspaceStore.importArchive")((archive, options) =>
        unlessDry(transact, importArchive(sql, archive), options)
      ),
      reviseArchive: Effect.fn("WorkspaceStore.reviseArchive")((workspace, revise, options) =>
        unlessDry(transact, reviseArchive(sql, workspace, revise), options)
      ),
      exportArchive: Effect.fn("WorkspaceStore.exportArchive")((workspace, sink) =>
        transact(Effect.andThen(sql.unsafe(oneState), exportArchive(sql, workspace, sink)))
      ),
      addKey: Effect.fn("WorkspaceStore.addKey")((...key) => transact(addKey(sql, ...key)))
    })
  })
)
