import {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  StoredKey,
  User,
  type WholeWorkspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../../../domain/Workspace.ts"

/** The items of a workspace, or those items that an edit writes. */
export type Content = Omit<WholeWorkspace, "workspace">

/** A table whose rows are found by their ids. Its columns have the names of the fields of the domain. */
interface Table {
  readonly columns: ReadonlyArray<string>
  /** Returns the SQL of the new values of a stored row that a given row updates, by column. */
  readonly merge: (stored: string, given: string) => Readonly<Record<string, string>>
  /**
   * The fields whose value can belong to another user, workspace or key: `condition` is the SQL condition that the
   * value of a given row `s` belongs to a stored row `t` of another owner. `home.id` is the given workspace.
   */
  readonly conflicts: ReadonlyArray<{
    readonly field: string
    readonly owner: "user" | "workspace" | "key"
    readonly condition: string
  }>
}

/** An existing user keeps the email, and `must_reset_password` can only become true. */
const users: Table = {
  columns: Object.keys(User.fields),
  merge: (stored, given) => ({
    must_reset_password: `${stored}.must_reset_password or ${given}.must_reset_password`
  }),
  conflicts: [
    { field: "id", owner: "user", condition: "t.id = s.id and lower(t.email) <> lower(s.email)" },
    { field: "email", owner: "user", condition: "lower(t.email) = lower(s.email) and t.id <> s.id" }
  ]
}

/** An existing key can be renamed, be revoked and expire earlier; it keeps its hash, its owner and its workspace. */
const api_keys: Table = {
  columns: Object.keys(StoredKey.fields),
  merge: (stored, given) => ({
    name: `${given}.name`,
    revoked_at: `coalesce(${stored}.revoked_at, ${given}.revoked_at)`,
    expires_at: `least(${stored}.expires_at, ${given}.expires_at)`
  }),
  conflicts: [
    {
      field: "id",
      owner: "workspace",
      condition: `t.id = s.id and t.workspace_id is distinct from home.id
        and (t.workspace_id, t.created_by) is distinct from (s.workspace_id, s.created_by)`
    },
    { field: "key_hash", owner: "key", condition: "t.key_hash = s.key_hash and t.id <> s.id" }
  ]
}

/** The lists of a prompt, which are in separate tables. */
const promptLists: ReadonlyArray<string> = ["tags", "fragments", "versions"]

/** Makes a table of content. The column `parent` contains the workspace or the prompt to which a row belongs. */
const makeTable = (parent: "workspace_id" | "prompt_id", schema: { readonly fields: object }): Table => {
  const fields = Object.keys(schema.fields).filter((name) => !promptLists.includes(name))
  const isOwn =
    parent === "workspace_id"
      ? "t.workspace_id = home.id"
      : "exists (select from prompts p where p.id = t.prompt_id and p.workspace_id = home.id)"
  return {
    columns: [parent, ...fields],
    merge: (_, given) =>
      Object.fromEntries(fields.filter((name) => name !== "id").map((name) => [name, `${given}.${name}`])),
    conflicts: [{ field: "id", owner: "workspace", condition: `t.id = s.id and not ${isOwn}` }]
  }
}

/** The tables by name. A table comes after the tables that it refers to. */
export const tables = {
  users,
  api_keys,
  folders: makeTable("workspace_id", Folder),
  tags: makeTable("workspace_id", WorkspaceTag),
  fragments: makeTable("workspace_id", Fragment),
  prompts: makeTable("workspace_id", WorkspacePrompt),
  prompt_fragments: makeTable("prompt_id", PromptFragment),
  prompt_versions: makeTable("prompt_id", PromptVersion)
}
export type TableName = keyof typeof tables

/** A row of a table, and the path of its item in the content. */
interface ContentRow {
  readonly path: string
  readonly row: { readonly id: string } & Readonly<Record<string, unknown>>
}

/** Yields the rows of a table, in the order of the content. */
export function* listRows(
  table: TableName,
  workspace_id: string,
  content: Content
): Generator<ContentRow, void> {
  switch (table) {
    case "prompt_fragments":
    case "prompt_versions": {
      const list = table === "prompt_fragments" ? "fragments" : "versions"
      for (const [index, prompt] of content.prompts.entries())
        for (const [position, item] of prompt[list].entries())
          yield { path: `prompts[${index}].${list}[${position}]`, row: { ...item, prompt_id: prompt.id } }
      break
    }
    case "prompts":
      for (const [index, { tags, fragments, versions, ...row }] of content.prompts.entries())
        yield { path: `prompts[${index}]`, row: { ...row, workspace_id } }
      break
    case "api_keys":
      // The hash is in PostgreSQL's hex format of `bytea`.
      for (const [index, key] of content.api_keys.entries())
        yield { path: `api_keys[${index}]`, row: { ...key, key_hash: `\\x${key.key_hash}` } }
      break
    default:
      for (const [index, item] of content[table].entries())
        yield { path: `${table}[${index}]`, row: { ...item, workspace_id } }
  }
}
