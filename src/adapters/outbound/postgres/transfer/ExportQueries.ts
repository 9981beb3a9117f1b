import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Prompt, PromptId, Tag, TagId } from "../../../../domain/Prompt.ts"
import { VersionId } from "../../../../domain/Version.ts"
import { Folder, Fragment, PromptFragment, PromptVersion } from "../../../../domain/workspace/Workspace.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { findById, type Statement } from "../driver/Query.ts"
import { makeRowDecoder, type RowDecoder } from "../driver/RowDecoder.ts"
import { fromKeyOwners } from "../workspaces/WorkspaceQueries.ts"
import { KeyRow, UserRow } from "../workspaces/WorkspaceRows.ts"

/** Maximum number of rows whose sizes are read at once. */
export const sizePageRows = 1_000

/** A row's id and the size of its texts in bytes. */
const SizedRow = Schema.Struct({ id: Schema.String, bytes: Schema.Number })
export type SizedRow = typeof SizedRow.Type

/** Decodes rows of sizes. */
export const decodeSizes = makeRowDecoder(SizedRow)

/** A row's size and its rank within the list of a prompt. */
const RankedRow = Schema.Struct({ id: Schema.String, rank: Schema.Int, bytes: Schema.Number })
export type RankedRow = typeof RankedRow.Type

/** Decodes the rows of `selectChildPage`. */
export const decodeRankedRows = makeRowDecoder(RankedRow)

/** Free-form JSON, exported as it is stored: only the editor decides its shape. */
const FreeForm = Schema.Any

const toColumns = (
  row: { readonly fields: object },
  expressions: Readonly<Record<string, string>> = {}
): string =>
  Object.keys(row.fields)
    .map((name) => (name in expressions ? `${expressions[name]} as ${name}` : name))
    .join(", ")

/** A list of rows that belong to a workspace. */
export interface WorkspaceTable<A> {
  readonly columns: string
  /** The FROM clause, with the condition that selects the rows of workspace `$1`. */
  readonly from: string
  /** The size of a row's texts in bytes. */
  readonly bytes: string
  readonly decode: RowDecoder<A>
}

export const users: WorkspaceTable<typeof UserRow.Type> = {
  columns: toColumns(UserRow),
  from: fromKeyOwners,
  bytes: "0",
  decode: makeRowDecoder(UserRow)
}

export const keys: WorkspaceTable<typeof KeyRow.Type> = {
  columns: toColumns(KeyRow, { key_hash: "encode(key_hash, 'hex')" }),
  from: "api_keys where workspace_id = $1",
  bytes: "octet_length(name)",
  decode: makeRowDecoder(KeyRow)
}

const FolderRow = Folder.mapFields(Struct.assign({ name: Schema.String }))
export const folders: WorkspaceTable<typeof FolderRow.Type> = {
  columns: toColumns(FolderRow),
  from: "folders where workspace_id = $1",
  bytes: "0",
  decode: makeRowDecoder(FolderRow)
}

export const tags: WorkspaceTable<Tag> = {
  columns: toColumns(Tag),
  from: "tags where workspace_id = $1",
  bytes: "0",
  decode: makeRowDecoder(Tag)
}

const FragmentRow = Fragment.mapFields(Struct.assign({ name: Schema.String, content: Schema.String }))
export const fragments: WorkspaceTable<typeof FragmentRow.Type> = {
  columns: toColumns(FragmentRow),
  from: "fragments where workspace_id = $1",
  bytes: "octet_length(content)",
  decode: makeRowDecoder(FragmentRow)
}

/** The row of a prompt. A folder of another workspace is left out, as in every read. */
const ExportedPromptRow = Prompt.mapFields(Struct.omit(["tags"]))
export type ExportedPromptRow = typeof ExportedPromptRow.Type
export const prompts: WorkspaceTable<ExportedPromptRow> = {
  columns: toColumns(ExportedPromptRow, {
    folder_id: `(select f.id from ${findById("folders", "p.folder_id", ["workspace_id"])} f
      where f.workspace_id = p.workspace_id)`
  }),
  from: "prompts p where workspace_id = $1",
  bytes: `octet_length(title) + octet_length(description) + octet_length(current_content)
    + octet_length(target_model) + octet_length(intent)`,
  decode: makeRowDecoder(ExportedPromptRow)
}

/** Selects the sizes of the next rows of a list of workspace `$1`, ordered by id. */
export const selectSizes = (
  { from, bytes }: WorkspaceTable<unknown>,
  workspace: WorkspaceId,
  after: string | undefined
): Statement => ({
  text: `select id, ${bytes} as bytes from ${from} ${after === undefined ? "" : "and id > $2"}
    order by id limit ${sizePageRows}`,
  params: after === undefined ? [workspace] : [workspace, after]
})

/** Selects rows of a list of a workspace, ordered by id. */
export const selectRows = (
  { columns, from }: WorkspaceTable<unknown>,
  workspace: WorkspaceId,
  ids: ReadonlyArray<string>
): Statement => ({
  text: `select ${columns} from ${from} and id = any($2::uuid[]) order by id`,
  params: [workspace, ids]
})

/** A row that belongs to a prompt. */
export interface Child<A> {
  readonly promptId: PromptId
  readonly item: A
}

const decodeOwner = Schema.decodeUnknownSync(Schema.Struct({ prompt_id: PromptId }))

const makeChildDecoder = <A>(item: Schema.Decoder<A>): RowDecoder<Child<A>> => {
  const decodeItem = Schema.decodeUnknownSync(item)
  return (rows) => rows.map((row) => ({ promptId: decodeOwner(row).prompt_id, item: decodeItem(row) }))
}

/** Decodes the rows of `selectTags`. */
export const decodeTags = makeChildDecoder(Schema.Struct({ id: TagId }))

/** Selects the tags of prompts; tags of other workspaces are left out. */
export const selectTags = (workspace: WorkspaceId, promptIds: ReadonlyArray<string>): Statement => ({
  text: `select pt.prompt_id, t.id from prompt_tags pt join tags t on t.id = pt.tag_id
    where pt.prompt_id = any($2::uuid[]) and t.workspace_id = $1 order by t.id`,
  params: [workspace, promptIds]
})

/** A list of rows that belong to prompts. */
export interface ChildList<A> {
  readonly table: "prompt_fragments" | "prompt_versions"
  readonly alias: string
  /** Selects the rows of all prompts of workspace `$1`. */
  readonly select: string
  /** The column that orders the rows of a prompt. */
  readonly order: string
  /** The size of a row in bytes. */
  readonly bytes: string
  readonly decode: RowDecoder<Child<A>>
}

const PromptFragmentRow = PromptFragment.mapFields(Struct.assign({ variable_overrides: FreeForm }))

/** The fragments of prompts; fragments of other workspaces are left out. */
export const promptFragments: ChildList<typeof PromptFragmentRow.Type> = {
  table: "prompt_fragments",
  alias: "pf",
  select: `select pf.prompt_id, pf.id, pf.fragment_id, pf.position, pf.variable_overrides
    from prompt_fragments pf join fragments f on f.id = pf.fragment_id
    where f.workspace_id = $1`,
  order: "position",
  bytes: "200 + octet_length(variable_overrides::text)",
  decode: makeChildDecoder(PromptFragmentRow)
}

const VersionRow = PromptVersion.mapFields(
  Struct.assign({
    content: Schema.String,
    change_summary: Schema.String,
    change_source: Schema.String,
    metadata: FreeForm
  })
)

/** The versions of prompts; a parent that belongs to another prompt or has a higher number is left out. */
export const versions: ChildList<typeof VersionRow.Type> = {
  table: "prompt_versions",
  alias: "v",
  select: `select v.prompt_id, v.id, v.version_number, v.content, v.change_summary, v.change_source,
    (select o.id from ${findById("prompt_versions", "v.parent_version_id", ["prompt_id", "version_number"])} o
      where o.prompt_id = v.prompt_id and o.version_number < v.version_number) as parent_version_id,
    v.metadata, v.created_at
    from prompt_versions v join prompts p on p.id = v.prompt_id
    where p.workspace_id = $1`,
  order: "version_number",
  bytes: `200 + octet_length(content) + octet_length(change_summary) + octet_length(change_source)
    + octet_length(metadata::text)`,
  decode: makeChildDecoder(VersionRow)
}

/** Selects the rows of a list by prompt ids or by row ids, ordered by prompt and then by the order of the list. */
export const selectChildren = (
  { select, alias, order }: ChildList<unknown>,
  workspace: WorkspaceId,
  column: "prompt_id" | "id",
  ids: ReadonlyArray<string>
): Statement => ({
  text: `${select} and ${alias}.${column} = any($2::uuid[])
    order by ${alias}.prompt_id, ${alias}.${order}, ${alias}.id`,
  params: [workspace, ids]
})

/** Selects the sizes of a list by prompt; prompts without rows are left out. */
export const selectChildSizes = (
  { table, bytes }: ChildList<unknown>,
  promptIds: ReadonlyArray<string>
): Statement => ({
  text: `select prompt_id as id, sum(${bytes})::float8 as bytes from ${table}
    where prompt_id = any($1::uuid[]) group by prompt_id`,
  params: [promptIds]
})

/** Selects the sizes of the next rows of a list of one prompt, in their order. */
export const selectChildPage = (
  { table, order, bytes }: ChildList<unknown>,
  promptId: string,
  after: RankedRow | undefined
): Statement => ({
  text: `select id, ${order} as rank, ${bytes} as bytes from ${table}
    where prompt_id = $1 ${after === undefined ? "" : `and (${order}, id) > ($2, $3)`}
    order by ${order}, id limit ${sizePageRows}`,
  params: after === undefined ? [promptId] : [promptId, after.rank, after.id]
})

/** Decodes the rows of `selectHistories`. */
export const decodeHistories = makeRowDecoder(
  Schema.Struct({
    id: PromptId,
    current_id: Schema.NullOr(VersionId),
    last_id: Schema.NullOr(VersionId),
    last_number: Schema.NullOr(Schema.Int)
  })
)

/** Selects the current and the last version of prompts. */
export const selectHistories = (promptIds: ReadonlyArray<string>): Statement => ({
  text: `select p.id, c.id as current_id, l.id as last_id, l.version_number as last_number
    from prompts p
    left join prompt_versions c on c.prompt_id = p.id and c.version_number = p.current_version
    left join lateral (select v.id, v.version_number from prompt_versions v where v.prompt_id = p.id
      order by v.version_number desc limit 1) l on true
    where p.id = any($1::uuid[])`,
  params: [promptIds]
})
