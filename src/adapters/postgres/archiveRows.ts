import type { Archive } from "../../application/Archive.ts"

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
export interface ArchiveRow {
  readonly path: string
  readonly row: { readonly id: string; readonly [column: string]: unknown }
}

/** The rows of each table of an archive's content, made as they are asked for: an archive may be large. */
export const contentRows: Record<ContentTable, (archive: Archive) => Iterable<ArchiveRow>> = {
  folders: (archive) => ownRows("folders", archive),
  tags: (archive) => ownRows("tags", archive),
  fragments: (archive) => ownRows("fragments", archive),
  prompts: (archive) => ownRows("prompts", archive),
  prompt_fragments: (archive) => rowsOfPrompts("fragments", archive),
  prompt_versions: (archive) => rowsOfPrompts("versions", archive)
}

function* ownRows(
  list: "folders" | "tags" | "fragments" | "prompts",
  archive: Archive
): Generator<ArchiveRow> {
  for (const [index, item] of archive[list].entries()) {
    // What a prompt has lists of is in tables of its own.
    const lists = { tags: undefined, fragments: undefined, versions: undefined }
    yield { path: `${list}[${index}]`, row: { ...item, ...lists, workspace_id: archive.workspace.id } }
  }
}

function* rowsOfPrompts(list: "fragments" | "versions", archive: Archive): Generator<ArchiveRow> {
  for (const [index, prompt] of archive.prompts.entries()) {
    for (const [i, item] of prompt[list].entries()) {
      yield { path: `prompts[${index}].${list}[${i}]`, row: { ...item, prompt_id: prompt.id } }
    }
  }
}
