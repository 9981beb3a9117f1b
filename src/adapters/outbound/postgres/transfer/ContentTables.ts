import {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  StoredKey,
  User,
  Workspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../../../domain/workspace/Workspace.ts"

/** Returns the names of the fields of a schema. The columns of its table have the same names. */
const toColumns = ({ fields }: { readonly fields: object }): ReadonlyArray<string> => Object.keys(fields)

/** The lists of a prompt, which are in separate tables. */
const promptLists: ReadonlyArray<string> = ["tags", "fragments", "versions"]

/** The tables of a workspace's content with their columns. A table comes after the tables that it refers to. */
export const contentColumns = {
  folders: [...toColumns(Folder), "workspace_id"],
  tags: [...toColumns(WorkspaceTag), "workspace_id"],
  fragments: [...toColumns(Fragment), "workspace_id"],
  prompts: [...toColumns(WorkspacePrompt).filter((name) => !promptLists.includes(name)), "workspace_id"],
  prompt_fragments: [...toColumns(PromptFragment), "prompt_id"],
  prompt_versions: [...toColumns(PromptVersion), "prompt_id"]
}
export type ContentTable = keyof typeof contentColumns
export const contentTables = Object.keys(contentColumns) as ReadonlyArray<ContentTable>

/** All tables that an import writes, with their columns. A table comes after the tables that it refers to. */
export const importColumns = {
  workspaces: toColumns(Workspace),
  users: toColumns(User),
  api_keys: toColumns(StoredKey),
  ...contentColumns,
  prompt_tags: ["prompt_id", "tag_id"]
}
export type ImportTable = keyof typeof importColumns
export const importTables = Object.keys(importColumns) as ReadonlyArray<ImportTable>

/** Returns true for a table of content with the column `workspace_id`. */
export const belongsToWorkspace = (table: ImportTable): boolean =>
  table in contentColumns && importColumns[table].includes("workspace_id")
