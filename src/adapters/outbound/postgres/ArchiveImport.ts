import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import {
  type Archive,
  type ArchiveKey,
  type ArchivePart,
  type ArchivePrompt,
  type ArchiveUser,
  InvalidArchive,
  type Problem,
  toArchiveParts
} from "../../../application/formats/Archive.ts"
import {
  type Columns,
  type ContentBatch,
  type ContentTable,
  contentColumns,
  contentRows,
  contentTables
} from "./ContentTables.ts"
import { describeSqlError, sqlState } from "./Database.ts"

/** Imports take their turn at this lock, so that what one has checked stays true until it is done. */
export const lock = "select pg_advisory_xact_lock(hashtext('prompt_retrieval_import'))"

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

/** Deletes what prompts have of tags, but for these pairs. */
const deleteOtherTags = `delete from prompt_tags t where t.prompt_id = any($1::uuid[]) and not exists (
    select from unnest($2::uuid[], $3::uuid[]) kept (prompt_id, tag_id)
    where kept.prompt_id = t.prompt_id and kept.tag_id = t.tag_id
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

const fault = (path: string, owner: string): Problem => ({ path, message: `is another ${owner}` })

const userConflicts = (sql: PgClient.PgClient, offset: number, users: ReadonlyArray<ArchiveUser>) =>
  Effect.map(
    sql.unsafe<Conflict>(otherUsers, [users.map(({ id }) => id), users.map(({ email }) => email)]),
    (taken) =>
      taken.map(({ n, by_id }) => fault(`users[${offset + n - 1}].${by_id ? "id" : "email"}`, "user's"))
  )

const keyConflicts = (
  sql: PgClient.PgClient,
  workspace: string,
  offset: number,
  keys: ReadonlyArray<ArchiveKey>
) =>
  Effect.map(
    sql.unsafe<Conflict>(otherKeys, [
      workspace,
      keys.map(({ id }) => id),
      keys.map(({ key_hash }) => key_hash)
    ]),
    (taken) =>
      taken.map(({ n, by_id }) => {
        const path = `api_keys[${offset + n - 1}]`
        return by_id ? fault(`${path}.id`, "workspace's") : fault(`${path}.key_hash`, "key's")
      })
  )

const contentConflicts = (sql: PgClient.PgClient, batch: ContentBatch) =>
  Effect.map(
    Effect.forEach(contentRows(batch), ([table, rows]) =>
      Effect.map(
        sql.unsafe<{ readonly n: number }>(idsOfOthers(table), [
          batch.workspace,
          rows.map(({ row }) => row.id)
        ]),
        (taken) => taken.map(({ n }) => fault(`${rows[n - 1]!.path}.id`, "workspace's"))
      )
    ),
    (faults) => faults.flat()
  )

/** Classes 22 and 23: a value that PostgreSQL can't hold or that a constraint forbids, which the domain had let pass. */
export const isConstraintViolation = (error: unknown): error is SqlError =>
  isSqlError(error) && /^2[23]/.test(sqlState(error))
export const toInvalidArchive = (error: SqlError): InvalidArchive =>
  InvalidArchive([{ path: "", message: `can't be stored: ${describeSqlError(error)}` }])

/** Items of one list that are written together, and where in the list they begin. */
interface Batch {
  readonly list: ArchivePart["list"]
  readonly offset: number
  readonly items: ReadonlyArray<never>
}

/** How much of an archive is held at once. */
const maxPendingItems = 1_000
const maxPendingLength = 4 * 1024 * 1024

/** Groups parts as they come: of one list, and not many at a time. */
const makeBatches = () => {
  let list: ArchivePart["list"] = "workspace"
  let offset = 0
  let items: Array<never> = []
  let length = 0
  const take = (): ReadonlyArray<Batch> => {
    const batch = { list, offset, items }
    offset += items.length
    items = []
    length = 0
    return batch.items.length === 0 ? [] : [batch]
  }
  return {
    take,
    add: (part: ArchivePart): ReadonlyArray<Batch> => {
      const full =
        part.list !== list || items.length === maxPendingItems || length >= maxPendingLength ? take() : []
      if (part.list !== list) offset = 0
      list = part.list
      items.push(part.item as never)
      length += JSON.stringify(part.item).length
      return full
    }
  }
}

/**
 * Writes an archive as its parts come, in a transaction of `sql`: what others own is a fault, and after the first
 * nothing more is written.
 */
export const importArchive = Effect.fnUntraced(function* <E = never>(
  sql: PgClient.PgClient,
  source: Archive | Stream.Stream<ArchivePart, E>
) {
  yield* sql.unsafe(lock)
  // Names, numbers and parents may change hands among the rows: what holds of them holds at the end.
  yield* sql`set constraints all deferred`
  const faults: Array<Problem> = []
  const kept = Object.fromEntries(contentTables.map((table) => [table, []])) as unknown as Record<
    ContentTable,
    Array<string>
  >
  let workspace = ""

  const write = Effect.fnUntraced(function* (text: string, rows: Iterable<object>) {
    for (const batch of batches(rows)) yield* sql.unsafe(text, [batch])
  })
  const writeTags = Effect.fnUntraced(function* (prompts: ReadonlyArray<ArchivePrompt>) {
    const tagged = prompts.flatMap((prompt) => prompt.tags.map((tag) => [prompt.id, tag] as const))
    const rows = [tagged.map(([prompt]) => prompt), tagged.map(([, tag]) => tag)]
    yield* sql.unsafe(deleteOtherTags, [prompts.map(({ id }) => id), ...rows])
    yield* sql.unsafe(insertTags, rows)
  })
  const writeContent = Effect.fnUntraced(function* (batch: ContentBatch) {
    faults.push(...(yield* contentConflicts(sql, batch)))
    if (faults.length > 0) return
    for (const [table, rows] of contentRows(batch)) {
      for (const { row } of rows) kept[table].push(row.id)
      yield* write(
        upsert(table, contentColumns[table]),
        rows.map(({ row }) => row)
      )
    }
    if (batch.list === "prompts") yield* writeTags(batch.items as ReadonlyArray<never>)
  })
  const writeBatch = Effect.fnUntraced(function* ({ list, offset, items }: Batch) {
    switch (list) {
      case "workspace": {
        const { id, name, tier, billing_status }: Archive["workspace"] = items[0]!
        workspace = id
        yield* sql.unsafe(upsertWorkspace, [id, name, tier, billing_status])
        return
      }
      case "users":
        faults.push(...(yield* userConflicts(sql, offset, items)))
        if (faults.length === 0) yield* write(upsertUsers, items)
        return
      case "api_keys":
        faults.push(...(yield* keyConflicts(sql, workspace, offset, items)))
        if (faults.length === 0) yield* write(upsertKeys, items)
        return
      default:
        yield* writeContent({ workspace, list, offset, items })
    }
  })

  const pending = makeBatches()
  const parts: Stream.Stream<ArchivePart, E> = Stream.isStream(source)
    ? (source as Stream.Stream<ArchivePart, E>)
    : Stream.fromIterable(toArchiveParts(source as Archive))
  yield* Stream.runForEachArray(
    parts,
    Effect.fnUntraced(function* (some) {
      for (const part of some) for (const batch of pending.add(part)) yield* writeBatch(batch)
    })
  )
  for (const batch of pending.take()) yield* writeBatch(batch)
  if (faults.length > 0) return yield* Effect.fail(InvalidArchive(faults))

  for (const table of contentTables.toReversed()) {
    yield* sql.unsafe(deleteOthers(table), [workspace, kept[table]])
  }
  yield* sql`set constraints all immediate`
})
