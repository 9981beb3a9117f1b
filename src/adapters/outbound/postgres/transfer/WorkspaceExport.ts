import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { maxArchiveBytes } from "../../../../application/transfer/Archive.ts"
import type { WholeWorkspace } from "../../../../domain/Workspace.ts"
import { ArchiveTooLarge } from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"
import { readList, readWorkspace } from "./ContentReader.ts"
import * as queries from "./ExportQueries.ts"

const sumBytes = (columns: ReadonlyArray<string>, from: string): string =>
  `(select coalesce(sum(${columns.map((column) => `octet_length(${column})`).join(" + ")}), 0) from ${from})`

/** Sums up the sizes of the large values of workspace `$1`. */
const selectSize = `select (${[
  sumBytes(["content"], "fragments where workspace_id = $1"),
  sumBytes(["current_content", "description"], "prompts where workspace_id = $1"),
  sumBytes(
    ["b.variable_overrides::text"],
    "prompts p join prompt_fragments b on b.prompt_id = p.id where p.workspace_id = $1"
  ),
  sumBytes(
    ["v.content", "v.change_summary", "v.metadata::text"],
    "prompts p join prompt_versions v on v.prompt_id = p.id where p.workspace_id = $1"
  )
].join(" + ")})::float8 as bytes`

const decodeSize = makeFirstRowDecoder(Schema.Struct({ bytes: Schema.Number }))

const groupByPrompt = <A>(items: ReadonlyArray<queries.Child<A>>): ReadonlyMap<string, ReadonlyArray<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const { promptId, item } of items) {
    const group = groups.get(promptId)
    if (group === undefined) groups.set(promptId, [item])
    else group.push(item)
  }
  return groups
}

/**
 * Reads a whole workspace: lists by id, versions by number, fragment bindings by position. Must run in a transaction
 * with one snapshot. If the contents alone are larger than an archive may be, fails without reading them.
 */
export const exportWorkspace = Effect.fnUntraced(function* (sql: PgClient, workspace: WorkspaceId) {
  const info = yield* readWorkspace(sql, workspace)
  const { bytes } = decodeSize(yield* sql.unsafe(selectSize, [workspace]))
  if (bytes > maxArchiveBytes) return yield* Effect.fail(ArchiveTooLarge)
  const read = <A>(query: queries.ListQuery<A>) => readList(sql, workspace, query)
  const users = yield* read(queries.lists.users)
  const api_keys = yield* read(queries.lists.api_keys)
  const folders = yield* read(queries.lists.folders)
  const tags = yield* read(queries.lists.tags)
  const fragments = yield* read(queries.lists.fragments)
  const prompts = yield* read(queries.prompts)
  const bindings = groupByPrompt(yield* read(queries.promptFragments))
  const versions = groupByPrompt(yield* read(queries.versions))
  return {
    workspace: info,
    users,
    api_keys,
    folders,
    tags,
    fragments,
    prompts: prompts.map((prompt) => ({
      ...prompt,
      fragments: bindings.get(prompt.id) ?? [],
      versions: versions.get(prompt.id) ?? []
    }))
  } satisfies WholeWorkspace
})
