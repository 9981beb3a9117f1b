import type { ArchivePrompt } from "../../../application/formats/Archive.ts"

/** A table's columns in the order of an archive's rows, with their types; the first is the id. */
export type Columns = Readonly<Record<string, string>>

const own = { id: "uuid", workspace_id: "uuid" }

/** The tables of a workspace's content, each after those that it refers to. */
export const contentColumns = {
  folders: { ...own, name: "text" },
  tags: { ...own, name: "text", color: "text" },
  fragments: { ...own, name: "text", content: "text" },
  prompts: {
    ...own,
    title: "text",
    description: "text",
    current_content: "text",
    prompt_type: "text",
    target_model: "text",
    intent: "text",
    current_version: "integer",
    folder_id: "uuid",
    is_favorite: "boolean",
    is_archived: "boolean",
    sort_order: "integer",
    created_at: "timestamptz",
    updated_at: "timestamptz"
  },
  prompt_fragments: {
    id: "uuid",
    prompt_id: "uuid",
    fragment_id: "uuid",
    position: "integer",
    variable_overrides: "jsonb"
  },
  prompt_versions: {
    id: "uuid",
    prompt_id: "uuid",
    version_number: "integer",
    content: "text",
    change_summary: "text",
    change_source: "text",
    parent_version_id: "uuid",
    metadata: "jsonb",
    created_at: "timestamptz"
  }
} satisfies Record<string, Columns>
export type ContentTable = keyof typeof contentColumns
export const contentTables = Object.keys(contentColumns) as ReadonlyArray<ContentTable>

/** A row to be, and where in the archive it comes from. */
export interface ContentRow {
  readonly path: string
  readonly row: { readonly id: string; readonly [column: string]: unknown }
}

/** Some items of one list of a workspace's content, the first of which is at `offset`. */
export interface ContentBatch {
  readonly workspace: string
  readonly list: "folders" | "tags" | "fragments" | "prompts"
  readonly offset: number
  readonly items: ReadonlyArray<{ readonly id: string }>
}

/** The rows that a batch is in each table, the tables in the order of `contentColumns`. */
export const contentRows = (
  batch: ContentBatch
): ReadonlyArray<readonly [ContentTable, ReadonlyArray<ContentRow>]> =>
  batch.list === "prompts"
    ? [
        ["prompts", ownRows(batch)],
        ["prompt_fragments", rowsOfPrompts("fragments", batch)],
        ["prompt_versions", rowsOfPrompts("versions", batch)]
      ]
    : [[batch.list, ownRows(batch)]]

const ownRows = ({ workspace, list, offset, items }: ContentBatch): ReadonlyArray<ContentRow> =>
  items.map((item, index) => {
    // What a prompt has lists of is in tables of its own.
    const lists = { tags: undefined, fragments: undefined, versions: undefined }
    return { path: `${list}[${offset + index}]`, row: { ...item, ...lists, workspace_id: workspace } }
  })

const rowsOfPrompts = (
  list: "fragments" | "versions",
  { offset, items }: ContentBatch
): ReadonlyArray<ContentRow> =>
  (items as ReadonlyArray<ArchivePrompt>).flatMap((prompt, index) =>
    prompt[list].map((item, i) => ({
      path: `prompts[${offset + index}].${list}[${i}]`,
      row: { ...item, prompt_id: prompt.id }
    }))
  )
