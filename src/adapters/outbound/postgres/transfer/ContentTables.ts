/** The tables of a workspace's content with their columns, each after the tables that it refers to. */
export const contentColumns = {
  folders: ["id", "workspace_id", "name"],
  tags: ["id", "workspace_id", "name", "color"],
  fragments: ["id", "workspace_id", "name", "content"],
  prompts: [
    "id",
    "workspace_id",
    "title",
    "description",
    "current_content",
    "prompt_type",
    "target_model",
    "intent",
    "current_version",
    "folder_id",
    "is_favorite",
    "is_archived",
    "sort_order",
    "created_at",
    "updated_at"
  ],
  prompt_fragments: ["id", "prompt_id", "fragment_id", "position", "variable_overrides"],
  prompt_versions: [
    "id",
    "prompt_id",
    "version_number",
    "content",
    "change_summary",
    "change_source",
    "parent_version_id",
    "metadata",
    "created_at"
  ]
} satisfies Record<string, ReadonlyArray<string>>
export type ContentTable = keyof typeof contentColumns
export const contentTables = Object.keys(contentColumns) as ReadonlyArray<ContentTable>

/** All tables that an import writes with their columns, each after the tables that it refers to. */
export const importColumns = {
  workspaces: ["id", "name", "tier", "billing_status"],
  users: ["id", "email", "must_reset_password"],
  api_keys: [
    "id",
    "workspace_id",
    "created_by",
    "name",
    "key_hash",
    "key_start",
    "key_end",
    "created_at",
    "revoked_at",
    "expires_at"
  ],
  ...contentColumns,
  prompt_tags: ["prompt_id", "tag_id"]
} satisfies Record<string, ReadonlyArray<string>>
export type ImportTable = keyof typeof importColumns
export const importTables = Object.keys(importColumns) as ReadonlyArray<ImportTable>

/** Returns true for a table of content with the column `workspace_id`. */
export const belongsToWorkspace = (table: ImportTable): boolean =>
  table in contentColumns && (importColumns[table] as ReadonlyArray<string>).includes("workspace_id")
