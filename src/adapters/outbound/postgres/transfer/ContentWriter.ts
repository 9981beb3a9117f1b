import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Iterable from "effect/Iterable"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  type WholeWorkspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../../../domain/Workspace.ts"
import { executeCounted, findById } from "../driver/Query.ts"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"

/** The content of a workspace, or the part of a workspace's content that an edit writes. */
export type Content = Pick<WholeWorkspace, "folders" | "tags" | "fragments" | "prompts">

/** Returns the names of the fields of a schema. The columns of its table have the same names. */
const toColumns = ({ fields }: { readonly fields: object }): ReadonlyArray<string> => Object.keys(fields)

/** The lists of a prompt, which are in separate tables. */
const promptLists: ReadonlyArray<string> = ["tags", "fragments", "versions"]

/** The tables of content with their columns. A table comes after the tables that it refers to. */
const contentColumns = {
  folders: ["workspace_id", ...toColumns(Folder)],
  tags: ["workspace_id", ...toColumns(WorkspaceTag)],
  fragments: ["workspace_id", ...toColumns(Fragment)],
  prompts: ["workspace_id", ...toColumns(WorkspacePrompt).filter((name) => !promptLists.includes(name))],
  prompt_fragments: ["prompt_id", ...toColumns(PromptFragment)],
  prompt_versions: ["prompt_id", ...toColumns(PromptVersion)]
}
export type ContentTable = keyof typeof contentColumns
export const contentTables = Object.keys(contentColumns) as ReadonlyArray<ContentTable>

/** The condition that a row `t` of a table belongs to workspace `$1`. */
export const isOwn = (table: ContentTable): string =>
  contentColumns[table].includes("workspace_id")
    ? "t.workspace_id = $1"
    : "exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = $1)"

/** A row of a table, and the path of its item in the content. */
interface ContentRow {
  readonly path: string
  readonly row: { readonly id: string } & Readonly<Record<string, unknown>>
}

/** Yields the rows of a table for the content of a workspace, in the order of the content. */
export function* listRows(
  table: ContentTable,
  workspace_id: string,
  content: Content
): Generator<ContentRow, void> {
  switch (table) {
    case "prompt_fragments":
    case "prompt_versions": {
      const list = table === "prompt_fragments" ? "fragments" : "versions"
      for (const [index, prompt] of content.prompts.entries())
        for (const [position, item] of prompt[list].entries())
          yield {
            path: `prompts[${index}].${list}[${position}]`,
            row: { ...item, prompt_id: prompt.id }
          }
      break
    }
    case "prompts":
      for (const [index, { tags, fragments, versions, ...row }] of content.prompts.entries())
        yield { path: `prompts[${index}]`, row: { ...row, workspace_id } }
      break
    default:
      for (const [index, item] of content[table].entries())
        yield { path: `${table}[${index}]`, row: { ...item, workspace_id } }
  }
}

/** The columns of a table, and how `makeUpsert` updates a row with an id that the table already contains. */
interface UpsertRules {
  readonly columns: ReadonlyArray<string>
  /** The assignments that update the stored row `t` with the given row `excluded`. */
  readonly updates: ReadonlyArray<string>
  /** Returns the condition under which a given row updates a stored row. */
  readonly differs: (stored: string, given: string) => string
}

/**
 * Makes the statement that adds the rows of the JSON array `$1`, and updates those that the table already contains if
 * they differ. Rows that do not differ are neither written nor locked. Rows are written in the order of their ids, so
 * that two transactions with the same rows do not deadlock. The statement returns how many rows it added and changed.
 */
export const makeUpsert = (table: string, { columns, updates, differs }: UpsertRules): string => {
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

/** The columns that an update does not change. */
const fixedColumns: ReadonlyArray<string> = ["id", "workspace_id", "prompt_id"]

const upsertContent = (table: ContentTable): string => {
  const columns = contentColumns[table]
  const changing = columns.filter((name) => !fixedColumns.includes(name))
  const list = (row: string) => `(${changing.map((name) => `${row}.${name}`)})`
  return makeUpsert(table, {
    columns,
    updates: changing.map((name) => `${name} = excluded.${name}`),
    differs: (stored, given) => `${list(stored)} is distinct from ${list(given)}`
  })
}

const decodeCounts = makeFirstRowDecoder(Schema.Struct({ added: Schema.Int, changed: Schema.Int }))

/** A batch of rows is sent when its JSON has at least this many characters. */
const fullBatchLength = 1024 * 1024

/** Runs a statement of `makeUpsert` with all rows, in batches. Returns how many rows were added and changed. */
export const upsertRows = Effect.fnUntraced(function* (
  sql: PgClient,
  statement: string,
  rows: Iterable<object>
) {
  let [added, changed] = [0, 0]
  let batch: Array<string> = []
  let length = 0
  const send = Effect.gen(function* () {
    const counts = decodeCounts(yield* sql.unsafe(statement, [`[${batch}]`]))
    added += counts.added
    changed += counts.changed
    batch = []
    length = 0
  })
  for (const row of rows) {
    const json = JSON.stringify(row)
    batch.push(json)
    length += json.length
    if (length >= fullBatchLength) yield* send
  }
  if (batch.length > 0) yield* send
  return { added, changed }
})

/** The first statement of a write. Rows may swap names, numbers and parents, so constraints are checked at the end. */
export const deferConstraints = "set constraints all deferred"
export const checkConstraints = "set constraints all immediate"

type Pair = readonly [string, string]

/** Returns the first and the second values of pairs, as the parameters of `unnest`. */
const unzip = (pairs: ReadonlyArray<Pair>): ReadonlyArray<ReadonlyArray<string>> => [
  pairs.map(([first]) => first),
  pairs.map(([, second]) => second)
]

/** The tables whose rows belong to a prompt, each with the two columns that identify a row and its prompt. */
const promptTables = {
  prompt_tags: "prompt_id, tag_id",
  prompt_fragments: "id, prompt_id",
  prompt_versions: "id, prompt_id"
}

/** Lists the values of these two columns for the rows of a table. */
const listPairs = (table: keyof typeof promptTables, { prompts }: Content): ReadonlyArray<Pair> =>
  prompts.flatMap(({ id: prompt, tags, fragments, versions }): ReadonlyArray<Pair> => {
    if (table === "prompt_tags") return tags.map((tag) => [prompt, tag])
    return (table === "prompt_fragments" ? fragments : versions).map(({ id }) => [id, prompt])
  })

/**
 * Deletes rows of some prompts: those that the content does not contain, and those that it contains in another prompt.
 * The SQL condition in `prompts` selects the prompts; its value is `$1`. Returns the number of deleted rows.
 */
export const deleteOtherPromptRows = (
  sql: PgClient,
  table: keyof typeof promptTables,
  content: Content,
  prompts: { readonly condition: string; readonly value: unknown }
): Effect.Effect<number, SqlError> =>
  executeCounted(sql, {
    text: `delete from ${table} t where ${prompts.condition}
      and (${promptTables[table]}) not in (select * from unnest($2::uuid[], $3::uuid[]))`,
    params: [prompts.value, ...unzip(listPairs(table, content))]
  })

/** Adds the tags that prompts do not have yet. */
const insertTags = `insert into prompt_tags (prompt_id, tag_id)
  select s.* from unnest($1::uuid[], $2::uuid[]) s (prompt_id, tag_id)
  where not exists (select from prompt_tags t where t.prompt_id = s.prompt_id and t.tag_id = s.tag_id)
  on conflict do nothing`

/**
 * Adds and updates the rows of a workspace's content, and returns how many rows were added and changed. The caller must
 * first delete the rows of prompts that the content does not contain, because the schema limits the rows of a prompt.
 */
export const writeContent = Effect.fnUntraced(function* (sql: PgClient, workspace: string, content: Content) {
  const params = unzip(listPairs("prompt_tags", content))
  let [added, changed] = [0, 0]
  for (const table of contentTables) {
    const rows = Iterable.map(listRows(table, workspace, content), ({ row }) => row)
    const counts = yield* upsertRows(sql, upsertContent(table), rows)
    added += counts.added
    changed += counts.changed
  }
  added += yield* executeCounted(sql, { text: insertTags, params })
  return { added, changed }
})
