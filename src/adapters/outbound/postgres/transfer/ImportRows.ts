import type { WorkspacePrompt } from "../../../../domain/workspace/Workspace.ts"
import type { WorkspacePart } from "../../../../domain/workspace/WorkspaceParts.ts"
import type { ImportTable } from "./ContentTables.ts"

/** A row of one table without the id of its workspace, and the row's path in the workspace. */
export interface ImportRow {
  readonly table: ImportTable
  readonly path: string
  /** The values of the table's columns. Other members are ignored. */
  readonly row: object
}

const toTagRows = (path: string, promptId: string, tags: WorkspacePrompt["tags"]): ReadonlyArray<ImportRow> =>
  tags.map((tag_id, index) => ({
    table: "prompt_tags",
    path: `${path}.tags[${index}]`,
    row: { prompt_id: promptId, tag_id }
  }))

const toChildRows = (
  path: string,
  promptId: string,
  list: "fragments" | "versions",
  items: ReadonlyArray<object>
): ReadonlyArray<ImportRow> =>
  items.map((item, index) => ({
    table: `prompt_${list}` as const,
    path: `${path}.${list}[${index}]`,
    row: { ...item, prompt_id: promptId }
  }))

/** Returns the rows of one part of a workspace; `index` is the part's position in its list. */
export const toPartRows = (part: WorkspacePart, index: number): ReadonlyArray<ImportRow> => {
  const path = `${part.list}[${index}]`
  switch (part.list) {
    case "workspace":
      return [{ table: "workspaces", path: "workspace", row: part.item }]
    case "prompts": {
      const { tags, fragments, versions, ...row } = part.item
      return [
        { table: "prompts", path, row },
        ...toTagRows(path, row.id, tags),
        ...toChildRows(path, row.id, "fragments", fragments),
        ...toChildRows(path, row.id, "versions", versions)
      ]
    }
    case "api_keys":
      return [{ table: "api_keys", path, row: { ...part.item, key_hash: `\\x${part.item.key_hash}` } }]
    default:
      return [{ table: part.list, path, row: part.item }]
  }
}
