import { largeBytes } from "../../../application/LargeReadPolicy.ts"
import { maxTitlesPerRead } from "../../../application/ports/PromptTitles.ts"
import type { PromptFilter } from "../../../application/ports/PromptRepo.ts"
import { isWithinOffsetLimit, maxPerPage, offset, type Page } from "../../../domain/Page.ts"
import { type PromptId, PromptSummary, type PromptTitle } from "../../../domain/Prompt.ts"
import { maxSlugSourceLength } from "../../../domain/PromptNames.ts"
import { maxResolvedBytes, maxFragmentBytes } from "../../../domain/Resolution.ts"
import type { Timestamp } from "../../../domain/Timestamp.ts"
import type { VersionNumber } from "../../../domain/Version.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { Statement } from "./connection/Query.ts"
import { findById } from "./FindById.ts"

/** Adds a parameter to a statement and returns its placeholder, such as `$1`. */
type AddParameter = (value: unknown) => string

/** Makes a statement that, if something was not found, returns less than `expectedRows` rows. */
const makeStatement = (expectedRows: 0 | 1, makeText: (parameter: AddParameter) => string): Statement => {
  const params: Array<unknown> = []
  return {
    text: makeText((value) => `$${params.push(value)}`),
    params,
    expectedRows
  }
}

/**
 * Selects one page of the rows of `ordered`. PostgreSQL rejects an offset that no list can have. The literal LIMIT
 * stops the generic plan from assuming 10 % of the rows.
 */
const paginate = (ordered: string, page: Page, parameter: AddParameter): string =>
  isWithinOffsetLimit(page)
    ? `select * from (
        ${ordered} limit ${parameter(page.per_page)} offset ${parameter(offset(page))}
      ) page limit ${maxPerPage}`
    : `${ordered} limit 0`

// All statements below leave out the columns, including `id`, of rows that are larger than their `maxBytes`, so that
// large rows are read separately by a statement with `unbounded`.

/** JSON of more stored bytes than this counts as large, because PostgreSQL must read it to know its size as text. */
const inlineStoredBytes = 64 * 1024
/** The value of `maxBytes` that sends rows of any size. */
export const unbounded = 2 ** 31 - 1
/** The value of `maxBytes` for lists whose page is large. */
export const maxPageBytes = 64 * 1024 * 1024

/** Joins the candidate row as `row` if the condition holds, otherwise nulls. PostgreSQL knows the size of a text without reading it. */
const joinRowIf = (condition: string, row: string): string =>
  `left join lateral (select candidate.* where ${condition}) ${row} on true`

/** Adds the sizes of columns, as bigint. */
const sumBytes = (...columns: ReadonlyArray<string>): string =>
  `0::bigint + ${columns.map((column) => `octet_length(candidate.${column})`).join(" + ")}`

const selectSummary = (row: string): string =>
  Object.keys(PromptSummary.fields)
    .map((column) => `${row}.${column}`)
    .join(", ")

/**
 * Selects the rows of one page as `candidate`, with `fits`: whether all of them together have at most `maxBytes`. The
 * join takes the workspace from `ids`. With a parameter instead, the generic plan would read the whole workspace for each
 * row of the page if most workspaces have a few prompts.
 */
const selectPage = (ids: string, maxBytes: string): string =>
  `(
      select ${selectSummary("candidate")},
        sum(${sumBytes("title", "description", "target_model", "intent")}) over () <= ${maxBytes} as fits
      from (${ids}) page join prompts candidate on candidate.id = page.id and candidate.workspace_id = page.workspace_id
    ) candidate`

/**
 * Selects the ids of the prompts that match a filter, in the order of the list. Each combination of filters has a
 * different text, so that PostgreSQL finds its index.
 */
const selectMatching = (workspace: string, filter: PromptFilter, parameter: AddParameter): string => {
  const conditions: Array<string> = []
  if (filter.type !== undefined) conditions.push(`and p.prompt_type = ${parameter(filter.type)}`)
  if (filter.folder_id !== undefined) {
    const folder = parameter(filter.folder_id)
    conditions.push(
      `and p.folder_id = ${folder}`,
      `and exists (select from folders f where f.id = ${folder} and f.workspace_id = ${workspace})`
    )
  }
  const listed =
    filter.tag === undefined
      ? `select p.id, p.workspace_id, p.updated_at from prompts p where p.workspace_id = ${workspace} and not p.is_archived`
      : `select p.prompt_id as id, p.workspace_id, p.listed_at as updated_at from prompt_tags p where p.listed_at is not null
          and p.workspace_id = ${workspace} and p.tag_id = (
            select t.id from tags t where t.workspace_id = ${workspace} and t.name = ${parameter(filter.tag)}
          )`
  // Ordered even for the count: PostgreSQL then uses the index instead of reading a whole table of short prompts.
  return `${listed} ${conditions.join(" ")} order by updated_at desc, id desc`
}

/**
 * Selects the total and one page of prompts. Both use one index in its order; only the rows of the page are
 * fetched. An empty page is one row without a prompt; a page larger than `maxBytes` has rows without prompts and
 * with a false `fits`.
 */
export const selectPrompts = (
  workspace: WorkspaceId,
  filter: PromptFilter,
  page: Page,
  maxBytes = largeBytes
): Statement =>
  makeStatement(0, (parameter) => {
    const workspaceParam = parameter(workspace)
    const matching = selectMatching(workspaceParam, filter, parameter)
    return `select total.count as total, candidate.fits, ${selectSummary("p")}
      from (select count(*)::int from (${matching} offset 0) matching) total
      left join ${selectPage(paginate(matching, page, parameter), parameter(maxBytes))} on true
      ${joinRowIf("candidate.fits", "p")}
      order by candidate.updated_at desc, candidate.id desc`
  })

/** Selects one page of prompts without the total. A page larger than `maxBytes` has rows without prompts. */
export const selectPromptPage = (
  workspace: WorkspaceId,
  filter: PromptFilter,
  page: Page,
  maxBytes = largeBytes
): Statement =>
  makeStatement(0, (parameter) => {
    const workspaceParam = parameter(workspace)
    const ids = paginate(selectMatching(workspaceParam, filter, parameter), page, parameter)
    return `select candidate.fits, ${selectSummary("p")}
      from ${selectPage(ids, parameter(maxBytes))}
      ${joinRowIf("candidate.fits", "p")}
      order by candidate.updated_at desc, candidate.id desc`
  })

/** Selects the titles that follow `after` in the order of the list, cut as `truncateTitle` does. */
export const selectTitles = (
  workspace: WorkspaceId,
  after: Pick<PromptTitle, "id" | "updated_at"> | undefined
): Statement =>
  makeStatement(0, (parameter) => {
    const isOfWorkspace = `p.workspace_id = ${parameter(workspace)} and not p.is_archived`
    const follows =
      after === undefined
        ? ""
        : `and (p.updated_at, p.id) < (${parameter(after.updated_at)}::timestamptz, ${parameter(after.id)}::uuid)`
    return `select p.id, left(p.title, ${maxSlugSourceLength}) as title, p.updated_at from prompts p
      where ${isOfWorkspace} ${follows} order by p.updated_at desc, p.id desc limit ${maxTitlesPerRead}`
  })

/** Identifies a prompt of a workspace. */
export interface PromptKey {
  readonly workspace: WorkspaceId
  readonly id: PromptId
}

/** The prompts that `$1` and `$2` request, as `candidate`, with their positions from 1 as `requested.ordinal`. */
const requestedPrompts = `unnest($1::uuid[], $2::uuid[]) with ordinality requested (workspace_id, id, ordinal)
    join prompts candidate on candidate.workspace_id = requested.workspace_id and candidate.id = requested.id`

/** Returns the parameters `$1` and `$2` of `requestedPrompts`. */
const toArrayParams = (prompts: ReadonlyArray<PromptKey>): ReadonlyArray<string> => [
  `{${prompts.map(({ workspace }) => workspace).join()}}`,
  `{${prompts.map(({ id }) => id).join()}}`
]

const selectPromptsText = `select requested.ordinal::int, ${selectSummary("p")}, p.current_content, f.id as folder_id, p.is_favorite, p.is_archived,
      p.sort_order,
      coalesce((
        select json_agg(json_build_object('id', t.id, 'name', t.name, 'color', t.color) order by t.name collate "C")
        from prompt_tags pt
        join ${findById("tags", "pt.tag_id", ["workspace_id", "name", "color"])} t on t.workspace_id = p.workspace_id
        where pt.prompt_id = p.id
      ), '[]') as tags
    from ${requestedPrompts}
    ${joinRowIf(`${sumBytes("title", "description", "target_model", "intent", "current_content")} <= $3`, "p")}
    left join ${findById("folders", "p.folder_id", ["workspace_id"])} f on f.workspace_id = p.workspace_id`

/**
 * Selects prompts with their folders and tags. A folder or tag of another workspace is left out. `ordinal` is the
 * position in `prompts`; a prompt that is larger than `maxBytes` has no other column.
 */
export const selectPromptsByKey = (prompts: ReadonlyArray<PromptKey>, maxBytes = largeBytes): Statement => ({
  text: selectPromptsText,
  params: [...toArrayParams(prompts), maxBytes],
  expectedRows: prompts.length
})

/** The fragments of the prompt `candidate` as `f`, and how it binds them as `pf`. */
const boundFragments = `prompt_fragments pf
            join ${findById("fragments", "pf.fragment_id", ["workspace_id", "content"])} f
              on f.workspace_id = candidate.workspace_id
          where pf.prompt_id = candidate.id`

/** Selects what resolution needs of `candidate` if the condition holds, and the fragments of `source`. */
const selectSourceColumns = (condition: string): string =>
  `${["id", "title", "prompt_type", "target_model", "current_content", "current_version"]
    .map((column) => `case when ${condition} then candidate.${column} end as ${column}`)
    .join(", ")}, source.contents, source.overrides`

const aggregateFragments = (condition: string): string => {
  const aggregate = (value: string) =>
    `coalesce(array_agg(${value} order by position, id) filter (where ${condition}), '{}')`
  return `${aggregate("content")} as contents, ${aggregate("variable_overrides::text")} as overrides`
}

const sourceBytes = sumBytes("title", "target_model", "current_content")

/**
 * Joins the fragments of `candidate` as `source`. `source.fits` is true if the prompt and its fragments together have at
 * most `largeBytes`. The stored size of overrides counts, because PostgreSQL must read them to know their size as text.
 */
const joinFragments = `cross join lateral (
        select ${aggregateFragments("fits")}, coalesce(bool_and(fits), ${sourceBytes} <= ${largeBytes}) as fits
        from (
          select pf.id, pf.position, pf.variable_overrides, f.content,
            ${sourceBytes} + sum(octet_length(f.content)) over () <= ${largeBytes}
              and sum(pg_column_size(pf.variable_overrides)) over () <= ${inlineStoredBytes} as fits
          from ${boundFragments}
        ) measured
      ) source`

const selectSourcesText = `select requested.ordinal::int, ${selectSourceColumns("source.fits")}
      from ${requestedPrompts} ${joinFragments}`

/**
 * Selects prompts with the contents and overrides of their fragments. `ordinal` is the position in `prompts`; a prompt
 * that is larger than `largeBytes` with its fragments has no other value.
 */
export const selectSources = (prompts: ReadonlyArray<PromptKey>): Statement => ({
  text: selectSourcesText,
  params: toArrayParams(prompts),
  expectedRows: prompts.length
})

/**
 * Selects a prompt of any size like `selectSources`. If its resolved content is certain to be too large, the row
 * has no value but a true `too_large`: `current_content` and the text that no binding can shorten exceed
 * `maxResolvedBytes`, or the fragments or their overrides exceed `maxFragmentBytes`.
 */
export const selectLargeSource = ({ workspace, id }: PromptKey): Statement => ({
  text: `select ${selectSourceColumns("not source.too_large")}, source.too_large
    from prompts candidate
    cross join lateral (
      select ${aggregateFragments("not too_large")},
        coalesce(bool_or(too_large), octet_length(candidate.current_content) > ${maxResolvedBytes}) as too_large
      from (
        select pf.id, pf.position, pf.variable_overrides, f.content,
          octet_length(candidate.current_content) + sum(2 + case
            when pg_column_size(pf.variable_overrides) > 16 then 0
            when pf.variable_overrides = '{}' then octet_length(f.content)
            else 0
          end) over () > ${maxResolvedBytes}
            or sum(octet_length(f.content)) over () > ${maxFragmentBytes}
            or sum(octet_length(pf.variable_overrides::text)) over () > ${maxFragmentBytes} as too_large
        from ${boundFragments}
      ) measured
    ) source
    where candidate.workspace_id = $1 and candidate.id = $2`,
  params: [workspace, id]
})

/** Selects the total and one page of versions, like `selectPrompts`; no row at all if there is no such prompt. */
export const selectVersions = (
  workspace: WorkspaceId,
  id: PromptId,
  oldest: Timestamp | undefined,
  page: Page,
  maxBytes = largeBytes
): Statement =>
  makeStatement(1, (parameter) => {
    const prompt = `p.workspace_id = ${parameter(workspace)} and p.id = ${parameter(id)}`
    const visible = `prompt_versions v where v.prompt_id = p.id${
      oldest === undefined ? "" : ` and v.created_at >= ${parameter(oldest)}`
    }`
    const numbers = paginate(
      `select v.version_number from ${visible} order by v.version_number desc`,
      page,
      parameter
    )
    return `select total.count as total, candidate.fits, v.version_number, v.change_summary, v.change_source, v.created_at
      from prompts p
      cross join lateral (select count(*)::int from ${visible}) total
      left join lateral (
        select candidate.version_number, candidate.change_summary, candidate.change_source, candidate.created_at,
          sum(${sumBytes("change_summary", "change_source")}) over () <= ${parameter(maxBytes)} as fits
        from (${numbers}) page
        join prompt_versions candidate on candidate.prompt_id = p.id and candidate.version_number = page.version_number
      ) candidate on true
      ${joinRowIf("candidate.fits", "v")}
      where ${prompt}
      order by candidate.version_number desc`
  })

/**
 * Selects a version. A parent of another prompt is left out; a version larger than `maxBytes` is a row of nulls.
 */
export const selectVersion = (
  workspace: WorkspaceId,
  id: PromptId,
  number: VersionNumber,
  oldest: Timestamp | undefined,
  maxBytes = largeBytes
): Statement =>
  makeStatement(1, (parameter) => {
    const isWithin =
      maxBytes === unbounded
        ? "true"
        : `${sumBytes("content", "change_summary", "change_source")} <= ${parameter(maxBytes)}
          and pg_column_size(candidate.metadata) <= ${inlineStoredBytes}`
    return `select v.id, v.prompt_id, v.version_number, v.content, v.change_summary, v.change_source,
        parent.id as parent_version_id, v.metadata, v.created_at
      from prompts p join prompt_versions candidate on candidate.prompt_id = p.id
      ${joinRowIf(isWithin, "v")}
      left join ${findById("prompt_versions", "v.parent_version_id", ["prompt_id"])} parent on parent.prompt_id = p.id
      where p.workspace_id = ${parameter(workspace)} and p.id = ${parameter(id)}
        and candidate.version_number = ${parameter(number)}
        ${oldest === undefined ? "" : `and candidate.created_at >= ${parameter(oldest)}`}`
  })
