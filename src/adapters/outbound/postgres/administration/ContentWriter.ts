import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
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
import { countRows } from "../driver/Query.ts"

/** The items of a workspace, or the items that an edit writes. */
export type ContentToWrite = Omit<WholeWorkspace, "workspace">

interface Table {
  /** The columns that a write sets. Each column has the name of a field of the domain. */
  readonly columns: ReadonlyArray<string>
  /** The columns that identify a row. */
  readonly key: ReadonlyArray<string>
  /** Maps a column to the SQL of its new value when the given row `excluded` updates the stored row `t`. */
  readonly merge: Readonly<Record<string, string>>
  /**
   * Collisions to reject. `condition` compares a given row `s` with a stored row `t`; `owner` is the noun that
   * completes "belongs to another …". `home.id` is the given workspace.
   */
  readonly conflicts: ReadonlyArray<readonly [field: string, owner: string, condition: string]>
}

/** A write keeps the email of an existing user, and can change `must_reset_password` only to true. */
const users: Table = {
  columns: Object.keys(User.fields),
  key: ["id"],
  merge: { must_reset_password: "t.must_reset_password or excluded.must_reset_password" },
  conflicts: [
    ["id", "user", "t.id = s.id and lower(t.email) <> lower(s.email)"],
    ["email", "user", "lower(t.email) = lower(s.email) and t.id <> s.id"]
  ]
}

/**
 * A write can rename or revoke an existing key, or make the key expire earlier. The key keeps its hash, its owner and
 * its workspace.
 */
const api_keys: Table = {
  columns: Object.keys(StoredKey.fields),
  key: ["id"],
  merge: {
    name: "excluded.name",
    revoked_at: "coalesce(t.revoked_at, excluded.revoked_at)",
    expires_at: "least(t.expires_at, excluded.expires_at)"
  },
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

/** Maps the tables of a prompt's lists to the names of the lists. */
const promptLists = {
  prompt_tags: "tags",
  prompt_fragments: "fragments",
  prompt_versions: "versions"
} as const

/**
 * Returns the SQL condition that row `t` belongs to a workspace. `parent` is the column with the row's workspace or
 * prompt.
 */
const belongsTo = (workspace: string, parent: string): string =>
  parent === "workspace_id"
    ? `t.workspace_id = ${workspace}`
    : `exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = ${workspace})`

/** A table of the content of a workspace. */
interface ContentTable extends Table {
  /** The column with the workspace or the prompt to which a row belongs. */
  readonly parent: "workspace_id" | "prompt_id"
  /** The column that identifies a row within its parent. */
  readonly id: string
}

const describeContentTable = (
  parent: ContentTable["parent"],
  schema: { readonly fields: object }
): ContentTable => {
  const lists: ReadonlyArray<string> = Object.values(promptLists)
  const fields = Object.keys(schema.fields).filter((name) => !lists.includes(name))
  return {
    parent,
    id: "id",
    columns: [parent, ...fields],
    key: ["id"],
    merge: Object.fromEntries(
      fields.filter((name) => name !== "id").map((name) => [name, `excluded.${name}`])
    ),
    conflicts: [["id", "workspace", `t.id = s.id and not ${belongsTo("home.id", parent)}`]]
  }
}

/** The tables of content by name. A table comes after the tables that it refers to. */
const contentTablesByName = {
  folders: describeContentTable("workspace_id", Folder),
  tags: describeContentTable("workspace_id", WorkspaceTag),
  fragments: describeContentTable("workspace_id", Fragment),
  prompts: describeContentTable("workspace_id", WorkspacePrompt),
  prompt_fragments: describeContentTable("prompt_id", PromptFragment),
  prompt_versions: describeContentTable("prompt_id", PromptVersion),
  prompt_tags: {
    parent: "prompt_id",
    id: "tag_id",
    columns: ["prompt_id", "tag_id"],
    key: ["prompt_id", "tag_id"],
    merge: { tag_id: "excluded.tag_id" },
    conflicts: []
  }
} satisfies Readonly<Record<string, ContentTable>>
type ContentTableName = keyof typeof contentTablesByName

/** All tables by name. A table comes after the tables that it refers to. */
export const tables = { ...contentTablesByName, users, api_keys }
type TableName = keyof typeof tables
const tableNames = Object.keys(tables) as ReadonlyArray<TableName>

/** The tables of users and keys. */
export const accountTables: ReadonlyArray<TableName> = ["users", "api_keys"]

/** The tables of the content of a workspace. */
export const contentTables = Object.keys(contentTablesByName) as ReadonlyArray<ContentTableName>

const isList = (table: TableName): table is keyof typeof promptLists => table in promptLists

/**
 * Yields the rows of a table in the order of the content, each with the path of its item in the content. A row has the
 * given columns; by default, every column of the table.
 */
function* listRows(
  table: TableName,
  workspace_id: string,
  content: ContentToWrite,
  columns: ReadonlyArray<string> = tables[table].columns
) {
  const toRow = (item: object) => {
    const values: Readonly<Record<string, unknown>> = { workspace_id, ...item }
    // A hash is written in PostgreSQL's hex format of `bytea`.
    const toValue = (name: string) => (name === "key_hash" ? `\\x${values[name]}` : values[name])
    return Object.fromEntries(columns.map((name) => [name, toValue(name)]))
  }
  if (isList(table)) {
    const list = promptLists[table]
    for (const [index, { id: prompt_id, [list]: items }] of content.prompts.entries())
      for (const [position, item] of items.entries()) {
        const values = typeof item === "string" ? { tag_id: item } : item
        yield { path: `prompts[${index}].${list}[${position}]`, row: toRow({ prompt_id, ...values }) }
      }
  } else
    for (const [index, item] of content[table].entries())
      yield { path: `${table}[${index}]`, row: toRow(item) }
}

const decodeConflicts = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ ordinal: Schema.Int, field: Schema.String, owner: Schema.String }))
)

/** Fails if an id, an email or a hash in the content belongs to another user, workspace or key. */
export const rejectConflicts = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: string,
  content: ContentToWrite
) {
  const problems: Array<Problem> = []
  for (const table of tableNames) {
    const { conflicts }: Table = tables[table]
    if (conflicts.length === 0) continue
    const rows = [...listRows(table, workspace, content)]
    const given = JSON.stringify(
      rows.map(({ row }) => row),
      ["id", "email", "key_hash", "workspace_id", "created_by"]
    )
    const selects = conflicts.map(
      ([field, owner, condition]) =>
        `select s.ordinality::int as ordinal, '${field}' as field, '${owner}' as owner
        from home, json_populate_recordset(null::${table}, $1::json) with ordinality s, ${table} t
        where ${condition}`
    )
    const text = `with home (id) as (values ($2::uuid)) ${selects.join(" union all ")} order by ordinal, field`
    for (const { ordinal, field, owner } of decodeConflicts(yield* sql.unsafe(text, [given, workspace])))
      problems.push({
        path: `${rows[ordinal - 1]?.path}.${field}`,
        message: `belongs to another ${owner}`
      })
  }
  if (problems.length > 0) yield* Effect.fail(InvalidContent(problems))
})

/** Returns the SQL row value with some columns of a row, such as `(t.prompt_id, t.id)`. */
const toRowExpression = (row: string, columns: ReadonlyArray<string>): string =>
  `(${columns.map((name) => `${row}.${name}`)})`

/**
 * Makes the statement that adds the rows of the JSON array `$1`, and updates existing rows that differ. The statement
 * neither writes nor locks rows that do not differ. The statement writes rows in the order of their keys, so that two
 * transactions with the same rows do not deadlock.
 */
const makeUpsert = (table: TableName): string => {
  const { columns, key, merge }: Table = tables[table]
  const updates = Object.entries(merge).map(([name, value]) => `${name} = ${value}`)
  // The given rows are named `excluded` as in ON CONFLICT, so that `merge` is valid in the comparison and the update.
  // `offset 0` forces a lookup by key, as in `lateralById`. An update locks the row, so only an added row has no `xmax`.
  return `with written as (
      insert into ${table} as t (${columns})
      select ${columns.map((name) => `excluded.${name}`)}
      from json_populate_recordset(null::${table}, $1::json) excluded left join lateral
        (select * from ${table} t where ${toRowExpression("t", key)} = ${toRowExpression("excluded", key)} offset 0) t on true
      where t.${key[0]} is null or ${toRowExpression("t", Object.keys(merge))} is distinct from (${Object.values(merge)})
      order by ${toRowExpression("excluded", key)}
      on conflict (${key}) do update set ${updates}
      returning t.xmax = 0 as is_added
    )
    select count(*) filter (where is_added)::int as added, count(*) filter (where not is_added)::int as changed
    from written`
}

const decodeCounts = Schema.decodeUnknownSync(Schema.Struct({ added: Schema.Int, changed: Schema.Int }))

/** A batch of rows is full when its JSON has at least this many characters. */
const fullBatchLength = 1024 * 1024

/** Adds and updates rows, table by table. Returns how many rows were added and changed. */
export const upsertRows = Effect.fnUntraced(function* (
  sql: PgClient,
  names: ReadonlyArray<TableName>,
  workspace: string,
  content: ContentToWrite
) {
  let [added, changed] = [0, 0]
  for (const table of names) {
    const statement = makeUpsert(table)
    let batch: Array<string> = []
    let length = 0
    const send = Effect.gen(function* () {
      const [row] = yield* sql.unsafe(statement, [`[${batch}]`])
      const counts = decodeCounts(row)
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

/** Returns a column of ids as an array literal. */
const toIdArray = (rows: ReadonlyArray<Readonly<Record<string, unknown>>>, column: string): string =>
  `{${rows.map((row) => row[column])}}`

/**
 * Deletes the stored rows that the content does not contain, or that the content assigns to another prompt. With
 * `prompts`, deletes only rows of these prompts; without `prompts`, rows of the whole workspace. Returns the number of
 * deleted rows.
 */
export const deleteOtherRows = Effect.fnUntraced(function* (
  sql: PgClient,
  names: ReadonlyArray<ContentTableName>,
  workspace: string,
  content: ContentToWrite,
  prompts?: ReadonlyArray<WorkspacePrompt>
) {
  let deleted = 0
  for (const table of names) {
    const { parent, id }: ContentTable = tables[table]
    const rows = [...listRows(table, workspace, content, [parent, id])].map(({ row }) => row)
    const text = `delete from ${table} t
      where ${prompts === undefined ? belongsTo("$1", parent) : "t.prompt_id = any($1::uuid[])"} and not exists
        (select from unnest($2::uuid[], $3::uuid[]) s (parent, id) where (s.parent, s.id) = (t.${parent}, t.${id}))`
    const owner = prompts === undefined ? workspace : toIdArray(prompts, "id")
    deleted += yield* countRows(sql.unsafe(text, [owner, toIdArray(rows, parent), toIdArray(rows, id)]))
  }
  return deleted
})
