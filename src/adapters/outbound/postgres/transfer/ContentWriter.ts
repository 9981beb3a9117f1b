import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { InvalidContent, type Problem } from "../../../../domain/WorkspaceContent.ts"
import { executeCounted, findById } from "../driver/Query.ts"
import { makeFirstRowDecoder, makeRowDecoder } from "../driver/RowDecoder.ts"
import { type Content, listRows, type TableName, tables } from "./ContentTables.ts"

const decodeConflicts = makeRowDecoder(
  Schema.Struct({ ordinal: Schema.Int, field: Schema.String, owner: Schema.String })
)

/** Finds the rows of one table whose id, email or hash belongs to another user, workspace or key. */
const findConflicts = (sql: PgClient, table: TableName, workspace: string, content: Content) => {
  const rows = [...listRows(table, workspace, content)]
  const given = JSON.stringify(
    rows.map(({ row }) => row),
    ["id", "email", "key_hash", "workspace_id", "created_by"]
  )
  const selects = tables[table].conflicts.map(
    ({ field, owner, condition }) =>
      `select s.ordinality::int as ordinal, '${field}' as field, '${owner}' as owner
      from home, json_populate_recordset(null::${table}, $1::json) with ordinality s, ${table} t
      where ${condition}`
  )
  const text = `with home (id) as (values ($2::uuid)) ${selects.join(" union all ")} order by ordinal, field`
  return Effect.map(sql.unsafe(text, [given, workspace]), (found) =>
    decodeConflicts(found).map(
      ({ ordinal, field, owner }): Problem => ({
        path: `${rows[ordinal - 1]?.path}.${field}`,
        message: `belongs to another ${owner}`
      })
    )
  )
}

/** Fails if an id, an email or a hash in the content belongs to another user, workspace or key. */
export const rejectConflicts = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: string,
  content: Content
) {
  const names = Object.keys(tables) as ReadonlyArray<TableName>
  const problems = yield* Effect.forEach(names, (table) => findConflicts(sql, table, workspace, content))
  if (problems.flat().length > 0) yield* Effect.fail(InvalidContent(problems.flat()))
})

/**
 * Makes the statement that adds the rows of the JSON array `$1`, and updates those that the table already contains if
 * they differ. Rows that do not differ are neither written nor locked. Rows are written in the order of their ids, so
 * that two transactions with the same rows do not deadlock.
 */
const makeUpsert = (table: TableName): string => {
  const { columns, merge } = tables[table]
  const differs = (stored: string, given: string): string => {
    const merged = merge(stored, given)
    const list = Object.keys(merged).map((name) => `${stored}.${name}`)
    return `(${list}) is distinct from (${Object.values(merged)})`
  }
  const updates = Object.entries(merge("t", "excluded")).map(([name, value]) => `${name} = ${value}`)
  const otherColumns = columns.filter((name) => name !== "id")
  // Only an added row has no `xmax`: an update locks the row first.
  return `with written as (
      insert into ${table} as t (${columns})
      select ${columns.map((name) => `s.${name}`)}
      from json_populate_recordset(null::${table}, $1::json) s
      left join ${findById(table, "s.id", otherColumns)} o on true
      where o.id is null or ${differs("o", "s")}
      order by s.id
      on conflict (id) do update set ${updates} where ${differs("t", "excluded")}
      returning t.xmax = 0 as is_added
    )
    select count(*) filter (where is_added)::int as added, count(*) filter (where not is_added)::int as changed
    from written`
}

const decodeCounts = makeFirstRowDecoder(Schema.Struct({ added: Schema.Int, changed: Schema.Int }))

/** A batch of rows is sent when its JSON has at least this many characters. */
const fullBatchLength = 1024 * 1024

/** Adds and updates the rows of tables. Returns how many rows were added and changed. */
export const upsertRows = Effect.fnUntraced(function* (
  sql: PgClient,
  names: ReadonlyArray<TableName>,
  workspace: string,
  content: Content
) {
  let [added, changed] = [0, 0]
  for (const table of names) {
    const statement = makeUpsert(table)
    let batch: Array<string> = []
    let length = 0
    const send = Effect.gen(function* () {
      const counts = decodeCounts(yield* sql.unsafe(statement, [`[${batch}]`]))
      added += counts.added
      changed += counts.changed
      batch = []
      length = 0
    })
    for (const { row } of listRows(table, workspace, content)) {
      const json = JSON.stringify(row)
      batch.push(json)
      length += json.length
      if (length >= fullBatchLength) yield* send
    }
    if (batch.length > 0) yield* send
  }
  return { added, changed }
})

/** The tables of a prompt's lists, each with the column that identifies a row within its prompt. */
const listTables = { prompt_tags: "tag_id", prompt_fragments: "id", prompt_versions: "id" }
type ListTable = keyof typeof listTables

/** Returns the ids of the prompts and the ids of the rows of a table, as the parameters of `unnest`. */
const unzipIds = (table: ListTable, { prompts }: Content) => {
  const pairs = prompts.flatMap(({ id: prompt, tags, fragments, versions }) => {
    if (table === "prompt_tags") return tags.map((id: string) => ({ prompt, id }))
    return (table === "prompt_fragments" ? fragments : versions).map(({ id }) => ({ prompt, id }))
  })
  return [pairs.map(({ prompt }) => prompt), pairs.map(({ id }) => id)] as const
}

/**
 * Deletes rows of some prompts: those that the content does not contain, and those that it contains in another prompt.
 * The SQL condition in `prompts` selects the prompts; its value is `$1`. Returns the number of deleted rows.
 */
export const deleteOtherPromptRows = Effect.fnUntraced(function* (
  sql: PgClient,
  names: ReadonlyArray<ListTable>,
  content: Content,
  prompts: { readonly condition: string; readonly value: unknown }
) {
  let deleted = 0
  for (const table of names)
    deleted += yield* executeCounted(sql, {
      text: `delete from ${table} t where ${prompts.condition}
        and (prompt_id, ${listTables[table]}) not in (select * from unnest($2::uuid[], $3::uuid[]))`,
      params: [prompts.value, ...unzipIds(table, content)]
    })
  return deleted
})

/** Adds the tags that prompts do not have yet. */
const insertTags = `insert into prompt_tags (prompt_id, tag_id)
  select s.* from unnest($1::uuid[], $2::uuid[]) s (prompt_id, tag_id)
  where not exists (select from prompt_tags t where t.prompt_id = s.prompt_id and t.tag_id = s.tag_id)
  on conflict do nothing`

const contentTables = [
  "folders",
  "tags",
  "fragments",
  "prompts",
  "prompt_fragments",
  "prompt_versions"
] as const

/**
 * Writes content: runs `deleteBefore`, adds and updates rows, and runs `deleteAfter`. The schema limits the rows of a
 * prompt, so `deleteBefore` must delete the rows of prompts that the content does not contain. Both return the number of
 * deleted rows. Rows may swap names, numbers and parents, so constraints are checked at the end. Fails with
 * `InvalidContent` if the content has an id of another workspace. Returns how many rows were written.
 */
export const writeContent = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: string,
  content: Content,
  deleteBefore: Effect.Effect<number, SqlError>,
  deleteAfter: Effect.Effect<number, SqlError>
) {
  yield* rejectConflicts(sql, workspace, content)
  yield* sql.unsafe("set constraints all deferred")
  const deleted = yield* deleteBefore
  const { added, changed } = yield* upsertRows(sql, contentTables, workspace, content)
  const tags = yield* executeCounted(sql, { text: insertTags, params: unzipIds("prompt_tags", content) })
  const removed = deleted + (yield* deleteAfter)
  yield* sql.unsafe("set constraints all immediate")
  return { added: added + tags, changed, removed }
})
