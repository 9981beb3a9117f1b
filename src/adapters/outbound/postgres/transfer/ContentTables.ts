import {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  type WholeWorkspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../../../domain/Workspace.ts"

/** The content of a workspace, or the part of a workspace's content that an edit writes. */
export type Content = Pick<WholeWorkspace, "folders" | "tags" | "fragments" | "prompts">

/** Returns the names of the fields of a schema. The columns of its table have the same names. */
const toColumns = ({ fields }: { readonly fields: object }): ReadonlyArray<string> => Object.keys(fields)

/** The lists of a prompt, which are in separate tables. */
const promptLists: ReadonlyArray<string> = ["tags", "fragments", "versions"]

/** The tables of content with their columns. A table comes after the tables that it refers to. */
export const contentColumns = {
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
