import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Prompt, PromptId, TagId } from "../../../../domain/Prompt.ts"
import { VersionId } from "../../../../domain/Version.ts"
import { Fragment, PromptFragment, PromptVersion } from "../../../../domain/Workspace.ts"
import { findById } from "../driver/Query.ts"
import { makeRowDecoder, type RowDecoder } from "../driver/RowDecoder.ts"
import { fromKeyOwners } from "../workspaces/WorkspaceQueries.ts"
import { FolderRow, KeyRow, TagRow, UserRow } from "../workspaces/WorkspaceRows.ts"

/** A query that selects a list of workspace `$1`, and the decoder of its rows. */
export interface ListQuery<A> {
  readonly text: string
  readonly decode: RowDecoder<A>
}

/** Free-form JSON, which is exported as it is stored. */
const FreeForm = Schema.Any

/**
 * Selects the columns of a schema from rows that are ordered by id. `expressions` has the SQL expressions of computed
 * columns.
 */
const selectList = <Fields extends Schema.Struct.Fields>(
  row: Schema.Struct<Fields> & Schema.Decoder<Schema.Struct<Fields>["Type"]>,
  from: string,
  expressions: Readonly<Record<string, string>> = {}
): ListQuery<Schema.Struct<Fields>["Type"]> => {
  const columns = Object.keys(row.fields).map((name) =>
    name in expressions ? `${expressions[name]} as ${name}` : name
  )
  return { text: `select ${columns.join(", ")} from ${from} order by id`, decode: makeRowDecoder(row) }
}

/** The lists that an export writes before the prompts, in the order of the export. */
export const lists = {
  users: selectList(UserRow, fromKeyOwners),
  api_keys: selectList(KeyRow, "api_keys where workspace_id = $1", { key_hash: "encode(key_hash, 'hex')" }),
  folders: selectList(FolderRow, "folders where workspace_id = $1"),
  tags: selectList(TagRow, "tags where workspace_id = $1"),
  fragments: selectList(
    Fragment.mapFields(Struct.assign({ name: Schema.String, content: Schema.String })),
    "fragments where workspace_id = $1"
  )
}

/** The prompts with the ids of their tags. Folders and tags of other workspaces are left out, as in every read. */
export const prompts = selectList(
  Prompt.mapFields(Struct.omit(["tags"])).mapFields(Struct.assign({ tags: Schema.Array(TagId) })),
  "prompts p where workspace_id = $1",
  {
    folder_id: `(select f.id from ${findById("folders", "p.folder_id", ["workspace_id"])} f
      where f.workspace_id = p.workspace_id)`,
    tags: `array(select t.id from prompt_tags pt, ${findById("tags", "pt.tag_id", ["workspace_id"])} t
      where pt.prompt_id = p.id and t.workspace_id = p.workspace_id order by t.id)`
  }
)

export interface Child<A> {
  readonly promptId: PromptId
  readonly item: A
}

const decodeOwner = Schema.decodeUnknownSync(Schema.Struct({ prompt_id: PromptId }))

const makeChildDecoder = <A>(item: Schema.Decoder<A>): RowDecoder<Child<A>> => {
  const decodeItem = Schema.decodeUnknownSync(item)
  return (rows) => rows.map((row) => ({ promptId: decodeOwner(row).prompt_id, item: decodeItem(row) }))
}

/**
 * The fragment bindings of all prompts, ordered by prompt and position. A fragment of another workspace is left out.
 */
export const promptFragments = {
  text: `select pf.prompt_id, pf.id, pf.fragment_id, pf.position, pf.variable_overrides
    from prompts p
    join prompt_fragments pf on pf.prompt_id = p.id
    join fragments f on f.id = pf.fragment_id and f.workspace_id = p.workspace_id
    where p.workspace_id = $1
    order by p.id, pf.position, pf.id`,
  decode: makeChildDecoder(PromptFragment.mapFields(Struct.assign({ variable_overrides: FreeForm })))
}

/**
 * The versions of all prompts, ordered by prompt and number. A parent is left out if it belongs to another prompt or
 * does not have a lower number.
 */
export const versions = {
  text: `select v.prompt_id, v.id, v.version_number, v.content, v.change_summary, v.change_source,
    (select o.id from ${findById("prompt_versions", "v.parent_version_id", ["prompt_id", "version_number"])} o
      where o.prompt_id = v.prompt_id and o.version_number < v.version_number) as parent_version_id,
    v.metadata, v.created_at
    from prompts p join prompt_versions v on v.prompt_id = p.id
    where p.workspace_id = $1
    order by p.id, v.version_number`,
  decode: makeChildDecoder(
    PromptVersion.mapFields(
      Struct.assign({
        content: Schema.String,
        change_summary: Schema.String,
        change_source: Schema.String,
        metadata: FreeForm
      })
    )
  )
}

/** The current and the last version of each prompt. */
export const histories = {
  text: `select p.id, c.id as current_id, l.id as last_id, l.version_number as last_number
    from prompts p
    left join prompt_versions c on c.prompt_id = p.id and c.version_number = p.current_version
    left join lateral (select v.id, v.version_number from prompt_versions v where v.prompt_id = p.id
      order by v.version_number desc limit 1) l on true
    where p.workspace_id = $1`,
  decode: makeRowDecoder(
    Schema.Struct({
      id: PromptId,
      current_id: Schema.NullOr(VersionId),
      last_id: Schema.NullOr(VersionId),
      last_number: Schema.NullOr(Schema.Int)
    })
  )
}
