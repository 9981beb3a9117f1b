/** The columns of a table in the order of an archive's fields, with their types. */
type Columns = Readonly<Record<string, string>>

const idAndWorkspace = { id: "uuid", workspace_id: "uuid" }

/** The tables of a workspace's content, each after the tables that it refers to. */
export const contentColumns = {
  folders: { ...idAndWorkspace, name: "text" },
  tags: { ...idAndWorkspace, name: "text", color: "text" },
  fragments: { ...idAndWorkspace, name: "text", content: "text" },
  prompts: {
    ...idAndWorkspace,
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

/** All tables that an import writes, each after the tables that it refers to. */
export const importColumns = {
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
    revoked_at: "timestamptz",
    expires_at: "timestamptz"
  },
  ...contentColumns,
  prompt_tags: { prompt_id: "uuid", tag_id: "uuid" }
} satisfies Record<string, Columns>
export type ImportTable = keyof typeof importColumns
export const importTables = Object.keys(importColumns) as ReadonlyArray<ImportTable>

/** The columns of an import's rows: those of their table, except the workspace of content, and the row's path. */
export const spooledColumns = (table: ImportTable): ReadonlyArray<string> => [
  ...Object.keys(importColumns[table]).filter(
    (name) => name !== "workspace_id" || !(table in contentColumns)
  ),
  "path"
]
