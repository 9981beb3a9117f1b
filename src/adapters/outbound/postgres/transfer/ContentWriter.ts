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
import { InvalidContent, type Problem } from "../../../../domain/WorkspaceContent.ts"
import { executeCounted } from "../driver/Query.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { makeUpsert, upsertRows } from "./Upsert.ts"

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

/** A field of the given row at the position `ordinal`, starting at 1, has a value that belongs to another `owner`. */
const decodeConflicts = makeRowDecoder(
  Schema.Struct({ ordinal: Schema.Int, field: Schema.String, owner: Schema.String })
)

/** Runs a query of conflicts. `paths` has the path of each given row. */
export const findConflicts = (
  sql: PgClient,
  conflicts: string,
  params: ReadonlyArray<unknown>,
  paths: ReadonlyArray<string>
) =>
  Effect.map(
    sql.unsafe(`select ordinal::int, field, owner from (${conflicts}) c order by ordinal, field`, params),
    (rows) =>
      decodeConflicts(rows).map(
        ({ ordinal, field, owner }): Problem => ({
          path: `${paths[ordinal - 1]}.${field}`,
          message: `belongs to another ${owner}`
        })
      )
  )

/** Finds the ids in content that belong to another workspace. */
export const findContentConflicts = (sql: PgClient, workspace: string, content: Content) =>
  Effect.map(
    Effect.forEach(contentTables, (table) => {
      const rows = [...listRows(table, workspace, content)]
      // The ids `$2` that belong to another workspace than `$1`.
      const conflicts = `select s.ordinal, 'id' as field, 'workspace' as owner
        from unnest($2::uuid[]) with ordinality s (id, ordinal) join ${table} t on t.id = s.id
        where not ${isOwn(table)}`
      const ids = rows.map(({ row }) => row.id)
      return findConflicts(
        sql,
        conflicts,
        [workspace, ids],
        rows.map(({ path }) => path)
      )
    }),
    (problems) => problems.flat()
  )

/** Fails if there are conflicts. */
export const rejectConflicts = (conflicts: ReadonlyArray<Problem>): Effect.Effect<void, InvalidContent> =>
  conflicts.length === 0 ? Effect.void : Effect.fail(InvalidContent(conflicts))

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
