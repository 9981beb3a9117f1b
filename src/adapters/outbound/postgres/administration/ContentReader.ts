import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { toTier } from "../../../../domain/Billing.ts"
import { Prompt, TagId } from "../../../../domain/Prompt.ts"
import { Version, VersionId } from "../../../../domain/Version.ts"
import { Fragment, PromptFragment, StoredKey, type WholeWorkspace } from "../../../../domain/Workspace.ts"
import {
  ArchiveTooLarge,
  ImportedState,
  maxArchiveBytes,
  type WorkspaceContent
} from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { lateralById } from "../driver/Query.ts"
import {
  findWorkspace,
  keyOwnersClause,
  makeReader,
  readFolders,
  readTags,
  readUsers
} from "./WorkspaceRows.ts"

const readStoredKeys = makeReader(StoredKey, "api_keys", { key_hash: "encode(key_hash, 'hex')" })
const readFragments = makeReader(Fragment, "fragments")

/** The clauses that select the items of workspace `$1`. */
const workspaceClause = "where workspace_id = $1 order by id"

/**
 * A prompt with its lists. The fields of an export come first, in the order of the export. `next_version` and
 * `parent_version_id` follow.
 */
const PromptRow = Schema.Struct({
  ...Struct.omit(Prompt.fields, ["tags"]),
  tags: Schema.Array(TagId),
  fragments: Schema.Array(PromptFragment.mapFields(Struct.assign({ variable_overrides: Schema.Any }))),
  next_version: Schema.Number,
  parent_version_id: Schema.NullOr(VersionId)
})

/** Reads prompts with the number and the parent of their next version. Omits references to other workspaces. */
const readPrompts = makeReader(PromptRow, "prompts p", {
  folder_id: `(select f.id from ${lateralById("folders", "p.folder_id", ["workspace_id"])} f
    where f.workspace_id = p.workspace_id)`,
  tags: `array(select t.id from prompt_tags pt, ${lateralById("tags", "pt.tag_id", ["workspace_id"])} t
    where pt.prompt_id = p.id and t.workspace_id = p.workspace_id order by t.id)`,
  // Overrides that are not an object bind no slot. The query returns `{}` for them, because archives and files require
  // an object.
  fragments: `(select coalesce(jsonb_agg(to_jsonb(b) || case jsonb_typeof(b.variable_overrides)
      when 'object' then '{}' else '{"variable_overrides": {}}'::jsonb end order by b.position, b.id), '[]')
    from prompt_fragments b, ${lateralById("fragments", "b.fragment_id", ["workspace_id"])} f
    where b.prompt_id = p.id and f.workspace_id = p.workspace_id)`,
  next_version: `1 + greatest(p.current_version,
    (select max(v.version_number) from prompt_versions v where v.prompt_id = p.id))::float8`,
  parent_version_id: `coalesce(
    (select v.id from prompt_versions v where v.prompt_id = p.id and v.version_number = p.current_version),
    (select v.id from prompt_versions v where v.prompt_id = p.id order by v.version_number desc limit 1))`
})

/** Reads the versions of prompts. Omits a parent that is not an earlier version of the same prompt. */
const readVersions = makeReader(Version, "prompts p join prompt_versions v on v.prompt_id = p.id", {
  id: "v.id",
  created_at: "v.created_at",
  parent_version_id: `(select o.id
    from ${lateralById("prompt_versions", "v.parent_version_id", ["prompt_id", "version_number"])} o
    where o.prompt_id = v.prompt_id and o.version_number < v.version_number)`
})

/** Reads the states that the latest import of files recorded. */
const readImportedStates = makeReader(ImportedState, "imported_states", { hash: "encode(hash, 'hex')" })

/** Reads the current state of a workspace's content. The caller must use a transaction with one snapshot. */
export const readContent = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  yield* findWorkspace(sql, workspace)
  return {
    folders: yield* readFolders(sql, workspaceClause, [workspace]),
    tags: yield* readTags(sql, workspaceClause, [workspace]),
    fragments: yield* readFragments(sql, workspaceClause, [workspace]),
    prompts: yield* readPrompts(sql, workspaceClause, [workspace]),
    importedStates: yield* readImportedStates(sql, workspaceClause, [workspace])
  } satisfies WorkspaceContent
})

/** Selects the total size of the large values of workspace `$1`, in bytes. */
const selectSize = `select coalesce(sum(bytes), 0)::float8 as bytes from (
  select octet_length(content) as bytes from fragments where workspace_id = $1
  union all
  select octet_length(current_content) + octet_length(description) from prompts where workspace_id = $1
  union all
  select octet_length(b.variable_overrides::text)
  from prompts p join prompt_fragments b on b.prompt_id = p.id where p.workspace_id = $1
  union all
  select octet_length(v.content) + octet_length(v.change_summary) + octet_length(v.metadata::text)
  from prompts p join prompt_versions v on v.prompt_id = p.id where p.workspace_id = $1
) s`

const decodeSize = Schema.decodeUnknownSync(Schema.Struct({ bytes: Schema.Number }))

/**
 * Reads a whole workspace. Orders lists by id, versions by number, and fragment bindings by position. The caller must
 * use a transaction with one snapshot. If the contents alone exceed the maximum size of an archive, fails without
 * reading the contents.
 */
export const exportWorkspace = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  const info = yield* findWorkspace(sql, workspace)
  const [size] = yield* sql.unsafe(selectSize, [workspace])
  const { bytes } = decodeSize(size)
  if (bytes > maxArchiveBytes) return yield* Effect.fail(ArchiveTooLarge)
  const versions = Map.groupBy(
    yield* readVersions(sql, "where p.workspace_id = $1 order by p.id, v.version_number", [workspace]),
    ({ prompt_id }) => prompt_id
  )
  const { importedStates: _, prompts, ...lists } = yield* readContent(sql, workspace)
  return {
    workspace: { ...info, tier: toTier(info.tier) },
    users: yield* readUsers(sql, keyOwnersClause, [workspace]),
    api_keys: yield* readStoredKeys(sql, workspaceClause, [workspace]),
    ...lists,
    prompts: prompts.map(({ next_version: _, parent_version_id: __, ...prompt }) => ({
      ...prompt,
      versions: (versions.get(prompt.id) ?? []).map(({ prompt_id: _, ...version }) => version)
    }))
  } satisfies WholeWorkspace
})
