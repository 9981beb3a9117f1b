import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { withSpans } from "../../../../application/observability/Instrumentation.ts"
import { PromptRepo } from "../../../../application/ports/PromptRepo.ts"
import { Prompt, PromptNotFound, RepeatedFields, repeatedFieldNames } from "../../../../domain/Prompt.ts"
import { type PromptReference, toIdRange } from "../../../../domain/PromptName.ts"
import { PageTooLarge, type ResolutionSource, ResolvedTooLarge } from "../../../../domain/Resolution.ts"
import { sizes } from "../../../../domain/Sizes.ts"
import type { Timestamp } from "../../../../domain/Timestamp.ts"
import { Version, VersionNotFound, type VersionNumber } from "../../../../domain/Version.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { Database } from "../Database.ts"
import { lateralById, makeStatement, type Row, type Statement } from "../driver/Query.ts"
import { decodeOrdinal, makeBatchedLookup } from "../driver/QueryPool.ts"
import { decodeNamed, decodeNames, nameColumns, requestedPrompts, toIdExpression } from "./NameQueries.ts"
import * as pages from "./PageQueries.ts"

interface PromptKey {
  readonly workspace: WorkspaceId
  readonly prompt: PromptReference
}

/** The FROM item `requested` if all prompts are given by id. This item is faster than `requestedPrompts`. */
const requestedIds = "unnest($1::uuid[], $2::uuid[]) with ordinality requested (workspace_id, id, ordinal)"

/** Converts texts without quotes and backslashes to an array literal. An undefined text becomes a null. */
const toArrayLiteral = (values: ReadonlyArray<string | undefined>): string =>
  `{${values.map((value) => (value === undefined ? "null" : `"${value}"`)).join()}}`

/**
 * Returns a function that makes a statement from the ids or the names of prompts. `toText` returns the text of the
 * statement for a FROM clause that selects the prompts as `p`, with `requested.ordinal`. `wrap` can add columns to the
 * FROM item `requested`.
 */
const selectByKey = (toText: (prompts: string) => string, wrap = (requested: string) => requested) => {
  const select = (requested: string) =>
    toText(`${wrap(requested)}
    join prompts p on p.workspace_id = requested.workspace_id and p.id = requested.id`)
  const byId = select(requestedIds)
  const byIdOrName = select(requestedPrompts)
  return (keys: ReadonlyArray<PromptKey>): Statement => {
    const names = keys.map(({ prompt }) => (typeof prompt === "string" ? undefined : prompt))
    const ids = [
      toArrayLiteral(keys.map(({ workspace }) => workspace)),
      toArrayLiteral(keys.map(({ prompt }) => (typeof prompt === "string" ? prompt : undefined)))
    ]
    const workspace = keys[0]?.workspace
    if (names.every((name) => name === undefined)) return { text: byId, params: ids, workspace }
    const ranges = names.map((name) => (name?.digits === undefined ? undefined : toIdRange(name.digits)))
    const nameParams = [
      toArrayLiteral(names.map((name) => name?.slug)),
      toArrayLiteral(ranges.map((range) => range?.first)),
      toArrayLiteral(ranges.map((range) => range?.last))
    ]
    return { text: byIdOrName, params: [...ids, ...nameParams], workspace }
  }
}

const { folder_id: _, tags: __, ...ownFields } = Prompt.fields

/**
 * Selects prompts with their folders and tags. Omits folders and tags of other workspaces. `ordinal` is the position of
 * the prompt in the argument, counted from 1.
 */
export const selectPromptsByKey = selectByKey(
  (prompts) => `select requested.ordinal::int, ${pages.toColumns(Object.keys(ownFields))}, f.id as folder_id,
      coalesce((
        select json_agg(json_build_object('id', t.id, 'name', t.name, 'color', t.color) order by t.name collate "C")
        from prompt_tags pt
        join ${lateralById("tags", "pt.tag_id", ["workspace_id", "name", "color"])} t on t.workspace_id = p.workspace_id
        where pt.prompt_id = p.id
      ), '[]') as tags
    from ${prompts}
    left join ${lateralById("folders", "p.folder_id", ["workspace_id"])} f on f.workspace_id = p.workspace_id`
)

const decodePrompt: (row: Row) => Prompt = Schema.decodeUnknownSync(Prompt)

/** Joins the fragments `f` to the join rows `pf` of a prompt `p`. Omits fragments of other workspaces. */
const joinFragments = `join ${lateralById("fragments", "pf.fragment_id", ["workspace_id", "content"])} f
          on f.workspace_id = p.workspace_id`

/**
 * The join rows of a prompt `p`, with their fragments `f` and the JSON of their overrides. OFFSET 0 makes PostgreSQL
 * convert each map of overrides to text only once.
 */
const boundFragments = `(
        select id, position, fragment_id, variable_overrides::text as overrides
        from prompt_fragments where prompt_id = p.id offset 0
      ) pf ${joinFragments}`

const aggregateFragments = (value: string, name: string): string =>
  `coalesce(array_agg(${value} order by position, id) filter (where bytes <= ${sizes.sourceBytes}), '{}') as ${name}`

const selectSourcesFrom = (prompts: string, columns = ""): string =>
  `select requested.ordinal::int, ${pages.toColumns(repeatedFieldNames)}, p.current_version, source.*,
      case when source.bytes <= ${sizes.sourceBytes} then p.current_content else '' end as current_content ${columns}
    from ${prompts}
    cross join lateral (
      select coalesce(max(bytes), octet_length(p.current_content))::int as bytes,
        ${aggregateFragments("content", "contents")}, ${aggregateFragments("overrides", "overrides")}
      from (
        select pf.id, pf.position, pf.overrides, f.content,
          octet_length(p.current_content) + sum(octet_length(f.content) + octet_length(pf.overrides)) over () as bytes
        from ${boundFragments}
      ) bound
    ) source`

/**
 * Selects prompts with the contents and overrides of their fragments. `ordinal` is the position of the prompt in the
 * argument, counted from 1. If `bytes` is larger than `sizes.sourceBytes`, the row has no content and no fragments. In
 * this case, PostgreSQL does not read the contents, because `octet_length` does not read the text itself.
 */
export const selectSources = selectByKey((prompts) => selectSourcesFrom(prompts))

/**
 * Adds the column `fits` to the FROM item `requested`. `fits` is true if the prompts together have at most
 * `sizes.pageSourceBytes`, not counting prompts that are too large on their own. If `fits` is false, the FROM item has
 * only one row.
 */
const withFit = (requested: string): string => `(
    select * from (
      select requested.*, row_number() over () as row,
        coalesce(sum(source.bytes) filter (where source.bytes <= ${sizes.sourceBytes}) over (), 0) <= ${sizes.pageSourceBytes} as fits
      from ${requested}
      cross join lateral (
        select octet_length(p.current_content) + fragments.bytes as bytes
        from prompts p
        cross join lateral (
          select coalesce(sum(octet_length(f.content) + octet_length(pf.overrides)), 0) as bytes
          from ${boundFragments}
        ) fragments
        where p.workspace_id = requested.workspace_id and p.id = requested.id
      ) source
    ) measured where fits or row = 1
  ) requested`

/** Selects the sources and the names of several prompts. If `fits` is false, the statement returns only one row. */
export const selectManySources = selectByKey(
  (prompts) => selectSourcesFrom(prompts, `, requested.fits, ${nameColumns}`),
  withFit
)

const decodeSourceRow = Schema.decodeUnknownSync(
  Schema.Struct({
    ...RepeatedFields.fields,
    current_content: Schema.String,
    current_version: Prompt.fields.current_version,
    bytes: Schema.Int,
    contents: Schema.Array(Schema.String),
    overrides: Schema.Array(Schema.String)
  })
)

/** Decodes a row of `selectSources`. Fails if the row lacks its content because the content is too large. */
const toSource = (row: Row): Result.Result<ResolutionSource, ResolvedTooLarge> => {
  const { contents, overrides, ...source } = decodeSourceRow(row)
  if (source.bytes > sizes.sourceBytes) return Result.fail(ResolvedTooLarge(source.id))
  const fragments = contents.map((content, index) => ({
    content,
    // The overrides are parsed on each access, because all parsed overrides of a prompt can take much more memory than
    // their texts.
    get variable_overrides() {
      return JSON.parse(overrides[index] ?? "{}")
    }
  }))
  return Result.succeed({ ...source, fragments })
}

/** Selects a version. `parent_version_id` is null if the parent is a version of another prompt. */
export const selectVersion = (
  workspace: WorkspaceId,
  prompt: PromptReference,
  number: VersionNumber,
  oldest: Timestamp | undefined
): Statement =>
  makeStatement(
    workspace,
    (parameter) => `select v.id, v.prompt_id, v.version_number, v.content, v.change_summary, v.change_source,
        parent.id as parent_version_id, v.metadata, v.created_at
      from prompts p join prompt_versions v on v.prompt_id = p.id
      left join ${lateralById("prompt_versions", "v.parent_version_id", ["prompt_id"])} parent on parent.prompt_id = p.id
      where p.workspace_id = ${parameter(workspace)} and p.id = ${toIdExpression(prompt, workspace, parameter)}
        and v.version_number = ${parameter(number)}
        ${oldest === undefined ? "" : `and v.created_at >= ${parameter(oldest)}`}`
  )

const decodeVersion: (row: Row) => Version = Schema.decodeUnknownSync(Version)

const makePromptRepo = Effect.gen(function* () {
  const { queryReads } = yield* Database
  // A slow statement of one workspace must not delay other workspaces.
  const partitionKey = ({ workspace }: PromptKey) => workspace
  const getPromptRow = makeBatchedLookup(queryReads, selectPromptsByKey, partitionKey)
  const getSourceRow = makeBatchedLookup(queryReads, selectSources, partitionKey)

  const repo = PromptRepo.of({
    list: (workspace, filter, page) =>
      pages.canMatch(filter)
        ? Effect.map(queryReads(pages.selectPrompts(workspace, filter, page)), pages.decodePromptList)
        : Effect.succeed({ items: [], total: 0 }),
    listPage: (workspace, filter, page) =>
      pages.canMatch(filter)
        ? Effect.map(queryReads(pages.selectPromptPage(workspace, filter, page)), pages.decodePromptPage)
        : Effect.succeed([]),
    listNamed: (workspace, page) => Effect.map(queryReads(pages.selectNamed(workspace, page)), decodeNamed),
    get: (workspace, prompt) =>
      Effect.flatMap(getPromptRow({ workspace, prompt }), (row) =>
        row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(decodePrompt(row))
      ),
    getSource: (workspace, prompt) =>
      Effect.flatMap(getSourceRow({ workspace, prompt }), (row) =>
        Effect.fromResult<ResolutionSource, PromptNotFound | ResolvedTooLarge>(
          row === undefined ? Result.fail(PromptNotFound) : toSource(row)
        )
      ),
    getSources: Effect.fnUntraced(function* (workspace, prompts) {
      const rows = yield* queryReads(selectManySources(prompts.map((prompt) => ({ workspace, prompt }))))
      if (rows.some(({ fits }) => fits !== true)) return yield* Effect.fail(PageTooLarge)
      const names = decodeNames(rows)
      const found = rows.map((row, position) => ({
        index: decodeOrdinal(row) - 1,
        name: names[position] ?? "",
        source: toSource(row)
      }))
      return found.sort((a, b) => a.index - b.index)
    }),
    listVersions: (workspace, prompt, oldest, page) =>
      Effect.flatMap(queryReads(pages.selectVersions(workspace, prompt, oldest, page)), (found) =>
        found.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(pages.decodeVersionList(found))
      ),
    getVersion: (workspace, prompt, number, oldest) =>
      Effect.flatMap(queryReads(selectVersion(workspace, prompt, number, oldest)), ([row]) =>
        row === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(decodeVersion(row))
      )
  })
  return yield* withSpans("PromptRepo", repo)
})

/** Provides the prompts in PostgreSQL. Each read is one statement. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(PromptRepo, makePromptRepo)
