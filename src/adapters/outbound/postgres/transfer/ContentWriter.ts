import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  StoredKey,
  User,
  type WholeWorkspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../../../domain/Workspace.ts"
import { InvalidContent, type Problem } from "../../../../domain/WorkspaceContent.ts"
import { executeCounted, findById } from "../driver/Query.ts"
import { makeFirstRowDecoder, makeRowDecoder } from "../driver/RowDecoder.ts"

/** The items of a workspace, or those items that an edit writes. */
export type Content = Omit<WholeWorkspace, "workspace">

/** A table whose rows are found by their ids. Its columns have the names of the fields of the domain. */
interface Table {
  readonly columns: ReadonlyArray<string>
  /** Returns the SQL of the new values of a stored row that a given row updates, by column. */
  readonly merge: (stored: string, given: string) => Readonly<Record<string, string>>
  /**
   * The fields whose value can belong to another user, workspace or key. `condition` is the SQL condition that the
   * value of a given row `s` belongs to a stored row `t` of another owner. `home.id` is the given workspace.
   */
  readonly conflicts: ReadonlyArray<readonly [field: string, owner: string, condition: string]>
}

/** An existing user keeps the email, and `must_reset_password` can only become true. */
const users: Table = {
  columns: Object.keys(User.fields),
  merge: (stored, given) => ({
    must_reset_password: `${stored}.must_reset_password or ${given}.must_reset_password`
  }),
  conflicts: [
    ["id", "user", "t.id = s.id and lower(t.email) <> lower(s.email)"],
    ["email", "user", "lower(t.email) = lower(s.email) and t.id <> s.id"]
  ]
}

/** An existing key can be renamed, be revoked and expire earlier; it keeps its hash, its owner and its workspace. */
const api_keys: Table = {
  columns: Object.keys(StoredKey.fields),
  merge: (stored, given) => ({
    name: `${given}.name`,
    revoked_at: `coalesce(${stored}.revoked_at, ${given}.revoked_at)`,
    expires_at: `least(${stored}.expires_at, ${given}.expires_at)`
  }),
  conflicts: [
    [
      "id",
      "workspace",
      `t.id = s.id and t.workspace_id is distinct from home.id
        and (t.workspace_id, t.created_by) is distinct from (s.workspace_id, s.created_by)`
    ],
    ["key_hash", "key", "t.key_hash = s.key_hash and t.id <> s.id"]
  ]
}

/** The lists of a prompt, which are in separate tables. */
const promptLists: ReadonlyArray<string> = ["tags", "fragments", "versions"]

/** Makes a table of content. The column `parent` contains the workspace or the prompt to which a row belongs. */
const makeTable = (parent: "workspace_id" | "prompt_id", schema: { readonly fields: object }): Table => {
  const fields = Object.keys(schema.fields).filter((name) => !promptLists.includes(name))
  const isOwn =
    parent === "workspace_id"
      ? "t.workspace_id = home.id"
      : "exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = home.id)"
  return {
    columns: [parent, ...fields],
    merge: (_, given) =>
      Object.fromEntries(fields.filter((name) => name !== "id").map((name) => [name, `${given}.${name}`])),
    conflicts: [["id", "workspace", `t.id = s.id and not ${isOwn}`]]
  }
}

/** The tables by name. A table comes after the tables that it refers to. */
export const tables = {
  users,
  api_keys,
  folders: makeTable("workspace_id", Folder),
  tags: makeTable("workspace_id", WorkspaceTag),
  fragments: makeTable("workspace_id", Fragment),
  prompts: makeTable("workspace_id", WorkspacePrompt),
  prompt_fragments: makeTable("prompt_id", PromptFragment),
  prompt_versions: makeTable("prompt_id", PromptVersion)
}
type TableName = keyof typeof tables

/** Yields the rows of a table in the order of the content, each with the path of its item in the content. */
function* listRows(
  table: TableName,
  workspace_id: string,
  content: Content
): Generator<{ readonly path: string; readonly row: object }, void> {
  switch (table) {
    case "prompt_fragments":
    case "prompt_versions": {
      const list = table === "prompt_fragments" ? "fragments" : "versions"
      for (const [index, prompt] of content.prompts.entries())
        for (const [position, item] of prompt[list].entries())
          yield { path: `prompts[${index}].${list}[${position}]`, row: { ...item, prompt_id: prompt.id } }
      break
    }
    case "prompts":
      for (const [index, { tags, fragments, versions, ...row }] of content.prompts.entries())
        yield { path: `prompts[${index}]`, row: { ...row, workspace_id } }
      break
    case "api_keys":
      // The hash is in PostgreSQL's hex format of `bytea`.
      for (const [index, key] of content.api_keys.entries())
        yield { path: `api_keys[${index}]`, row: { ...key, key_hash: `\\x${key.key_hash}` } }
      break
    default:
      for (const [index, item] of content[table].entries())
        yield { path: `${table}[${index}]`, row: { ...item, workspace_id } }
  }
}

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
    ([field, owner, condition]) =>
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
 * Makes the statement that adds the rows of the JSON array `$1`, and updates existing rows that differ. Rows that do
 * not differ are neither written nor locked. Rows are written in the order of their ids, so that two transactions with
 * the same rows do not deadlock.
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
