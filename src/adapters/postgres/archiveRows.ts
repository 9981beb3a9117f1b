import type { ArchivePart, ArchivePrompt } from "../../application/Archive.ts"

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

/** Every table that an import writes, with the columns of its rows. */
export const archiveColumns = {
  workspaces: { id: "uuid", name: "text", tier: "text", billing_status: "text" },
  users: { id: "uuid", email: "text", must_reset_password: "boolean" },
  api_keys: {
    id: "uuid",
    workspace_id: "uuid",
    created_by: "uuid",
    name: "text",
    key_hash: "text",
    key_start: "text",
    key_end: "text",
    created_at: "timestamptz",
    revoked_at: "timestamptz"
  },
  ...contentColumns,
  prompt_tags: { prompt_id: "uuid", tag_id: "uuid" }
} satisfies Record<string, Columns>
export type ArchiveTable = keyof typeof archiveColumns
export const archiveTables = Object.keys(archiveColumns) as ReadonlyArray<ArchiveTable>

/** A row of one table and its path in the archive. */
export interface ArchiveRow {
  readonly table: ArchiveTable
  readonly path: string
  readonly row: object
}

/** The rows of a prompt's tags. */
export const tagRows = (
  path: string,
  prompt: string,
  tags: ArchivePrompt["tags"]
): ReadonlyArray<ArchiveRow> =>
  tags.map((tag_id, index) => ({
    table: "prompt_tags",
    path: `${path}.tags[${index}]`,
    row: { prompt_id: prompt, tag_id }
  }))

/** The rows of a prompt's fragments or versions. */
export const childRows = (
  path: string,
  prompt: string,
  list: "fragments" | "versions",
  items: ReadonlyArray<object>
): ReadonlyArray<ArchiveRow> =>
  items.map((item, index) => ({
    table: `prompt_${list}` as const,
    path: `${path}.${list}[${index}]`,
    row: { ...item, prompt_id: prompt }
  }))

/** The rows of one part of a workspace's archive; `index` is the part's place in its list. */
export const rowsOf = (workspace: string, part: ArchivePart, index: number): ReadonlyArray<ArchiveRow> => {
  const path = `${part.list}[${index}]`
  switch (part.list) {
    case "workspace":
      return [{ table: "workspaces", path: "workspace", row: part.item }]
    case "users":
    case "api_keys":
      return [{ table: part.list, path, row: part.item }]
    case "prompts": {
      const { tags, fragments, versions, ...row } = part.item
      return [
        { table: "prompts", path, row: { ...row, workspace_id: workspace } },
        ...tagRows(path, row.id, tags),
        ...childRows(path, row.id, "fragments", fragments),
        ...childRows(path, row.id, "versions", versions)
      ]
    }
    default:
      return [{ table: part.list, path, row: { ...part.item, workspace_id: workspace } }]
  }
}
