import { maxTitlesPerRead } from "../../../../application/ports/PromptTitles.ts"
import type { PromptFilter } from "../../../../application/ports/PromptRepo.ts"
import { isWithinOffsetLimit, maxPerPage, offset, type Page } from "../../../../domain/Page.ts"
import {
  type PromptId,
  PromptSummary,
  type PromptTitle,
  repeatedFieldNames
} from "../../../../domain/Prompt.ts"
import { maxSlugSourceLength } from "../../../../domain/PromptNames.ts"
import { sizes } from "../../../../domain/Sizes.ts"
import type { Timestamp } from "../../../../domain/Timestamp.ts"
import type { VersionNumber } from "../../../../domain/Version.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { findById, type Statement } from "../driver/Query.ts"

/** Adds a parameter to a statement and returns its placeholder, such as `$1`. */
type AddParameter = (value: unknown) => string

/** Makes a statement that returns fewer than `expectedRows` rows if something was not found. */
const makeStatement = (
  workspace: WorkspaceId,
  expectedRows: 0 | 1,
  makeText: (parameter: AddParameter) => string
): Statement => {
  const params: Array<unknown> = []
  return {
    text: makeText((value) => `$${params.push(value)}`),
    params,
    expectedRows,
    workspace
  }
}

/**
 * Selects one page of the rows of `ordered`. An offset beyond the end of any list is not sent, because PostgreSQL may
 * reject the number. Without the literal LIMIT, the generic plan would assume that a page has 10% of the rows.
 */
const paginate = (ordered: string, page: Page, parameter: AddParameter): string =>
  isWithinOffsetLimit(page)
    ? `select * from (
        ${ordered} limit ${parameter(page.per_page)} offset ${parameter(offset(page))}
      ) page limit ${maxPerPage}`
    : `${ordered} limit 0`

const toColumns = (names: ReadonlyArray<string>): string => names.map((name) => `p.${name}`).join(", ")

const summaryColumns = toColumns(Object.keys(PromptSummary.fields))

/**
 * Selects the prompts whose ids the query `ids` returns, as `p`. The join compares the workspace with a column of
 * `ids`. With a parameter in place of this column, the generic plan would read the whole workspace for each row of the
 * page if most workspaces have few prompts.
 */
const selectPage = (ids: string): string =>
  `select ${summaryColumns}
      from (${ids}) page join prompts p on p.id = page.id and p.workspace_id = page.workspace_id`

/**
 * Selects the ids of the prompts that match a filter, in the order of the list. Each combination of filters has a
 * different text, so that PostgreSQL can choose the best index for each combination.
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
  // The count is ordered too. Without the order, PostgreSQL may read the whole table instead of the index if the
  // prompts are short.
  return `${listed} ${conditions.join(" ")} order by updated_at desc, id desc`
}

/**
 * Selects the total and one page of prompts. The count and the page read the same index in its order, and only the rows
 * of the page are fetched from the table. If the page is empty, selects one row that has the total and no prompt.
 */
export const selectPrompts = (workspace: WorkspaceId, filter: PromptFilter, page: Page): Statement =>
  makeStatement(workspace, 0, (parameter) => {
    const workspaceParam = parameter(workspace)
    const matching = selectMatching(workspaceParam, filter, parameter)
    return `select total.count as total, p.*
      from (select count(*)::int from (${matching} offset 0) matching) total
      left join (${selectPage(paginate(matching, page, parameter))}) p on true
      order by p.updated_at desc, p.id desc`
  })

/** Selects one page of prompts without the total. */
export const selectPromptPage = (workspace: WorkspaceId, filter: PromptFilter, page: Page): Statement =>
  makeStatement(workspace, 0, (parameter) => {
    const workspaceParam = parameter(workspace)
    const ids = paginate(selectMatching(workspaceParam, filter, parameter), page, parameter)
    return `${selectPage(ids)} order by p.updated_at desc, p.id desc`
  })

/** Selects the titles that follow `after` in the order of the list, truncated like `truncateTitle`. */
export const selectTitles = (
  workspace: WorkspaceId,
  after: Pick<PromptTitle, "id" | "updated_at"> | undefined
): Statement =>
  makeStatement(workspace, 0, (parameter) => {
    const isOfWorkspace = `p.workspace_id = ${parameter(workspace)} and not p.is_archived`
    const follows =
      after === undefined
        ? ""
        : `and (p.updated_at, p.id) < (${parameter(after.updated_at)}::timestamptz, ${parameter(after.id)}::uuid)`
    return `select p.id, left(p.title, ${maxSlugSourceLength}) as title, p.updated_at from prompts p
      where ${isOfWorkspace} ${follows} order by p.updated_at desc, p.id desc limit ${maxTitlesPerRead}`
  })

export interface PromptKey {
  readonly workspace: WorkspaceId
  readonly id: PromptId
}

/**
 * A FROM clause that selects the prompts with the workspaces `$1` and the ids `$2`, as `p`. `requested.ordinal` is the
 * position of a prompt in `$1` and `$2`, counted from 1.
 */
const requestedPrompts = `unnest($1::uuid[], $2::uuid[]) with ordinality requested (workspace_id, id, ordinal)
    join prompts p on p.workspace_id = requested.workspace_id and p.id = requested.id`

/** Returns the parameters `$1` and `$2` of `requestedPrompts`. */
const toArrayParams = (prompts: ReadonlyArray<PromptKey>): ReadonlyArray<string> => [
  `{${prompts.map(({ workspace }) => workspace).join()}}`,
  `{${prompts.map(({ id }) => id).join()}}`
]

const selectPromptsText = `select requested.ordinal::int, ${summaryColumns}, p.current_content, f.id as folder_id, p.is_favorite, p.is_archived,
      p.sort_order,
      coalesce((
        select json_agg(json_build_object('id', t.id, 'name', t.name, 'color', t.color) order by t.name collate "C")
        from prompt_tags pt
        join ${findById("tags", "pt.tag_id", ["workspace_id", "name", "color"])} t on t.workspace_id = p.workspace_id
        where pt.prompt_id = p.id
      ), '[]') as tags
    from ${requestedPrompts}
    left join ${findById("folders", "p.folder_id", ["workspace_id"])} f on f.workspace_id = p.workspace_id`

/**
 * Selects prompts with their folders and tags. A folder or tag of another workspace is left out. `ordinal` is the
 * position in `prompts`, counted from 1.
 */
export const selectPromptsByKey = (prompts: ReadonlyArray<PromptKey>): Statement => ({
  text: selectPromptsText,
  params: toArrayParams(prompts),
  expectedRows: prompts.length,
  workspace: prompts[0]?.workspace
})

const aggregateFragments = (value: string, name: string): string =>
  `coalesce(array_agg(${value} order by position, id) filter (where bytes <= ${sizes.sourceBytes}), '{}') as ${name}`

// `octet_length` does not read the text itself, so the contents of fragments are not read if they are too large in
// total.
const selectSourcesText = `select requested.ordinal::int, ${toColumns(repeatedFieldNames)}, p.current_content, p.current_version, source.*
    from ${requestedPrompts}
    cross join lateral (
      select coalesce(max(bytes) > ${sizes.sourceBytes}, false) as too_large,
        ${aggregateFragments("content", "contents")}, ${aggregateFragments("variable_overrides::text", "overrides")}
      from (
        select pf.id, pf.position, pf.variable_overrides, f.content,
          octet_length(p.current_content) + sum(octet_length(f.content)) over () as bytes
        from prompt_fragments pf
        join ${findById("fragments", "pf.fragment_id", ["workspace_id", "content"])} f
          on f.workspace_id = p.workspace_id
        where pf.prompt_id = p.id
      ) bound
    ) source`

/**
 * Selects prompts with the contents and overrides of their fragments. `ordinal` is the position in `prompts`, counted
 * from 1. If the contents together are larger than `sizes.sourceBytes`, `too_large` is true and the row has no
 * fragments.
 */
export const selectSources = (prompts: ReadonlyArray<PromptKey>): Statement => ({
  text: selectSourcesText,
  params: toArrayParams(prompts),
  expectedRows: prompts.length,
  workspace: prompts[0]?.workspace
})

/** Selects the total and one page of versions, like `selectPrompts`. Selects no row if the prompt does not exist. */
export const selectVersions = (
  workspace: WorkspaceId,
  id: PromptId,
  oldest: Timestamp | undefined,
  page: Page
): Statement =>
  makeStatement(workspace, 1, (parameter) => {
    const prompt = `p.workspace_id = ${parameter(workspace)} and p.id = ${parameter(id)}`
    const visible = `prompt_versions v where v.prompt_id = p.id${
      oldest === undefined ? "" : ` and v.created_at >= ${parameter(oldest)}`
    }`
    const numbers = paginate(
      `select v.version_number from ${visible} order by v.version_number desc`,
      page,
      parameter
    )
    // Without OFFSET 0, PostgreSQL may count the versions again for each row of the page.
    return `select p.total, v.version_number, v.change_summary, v.change_source, v.created_at
      from (select p.id, (select count(*)::int from ${visible}) as total from prompts p where ${prompt} offset 0) p
      left join lateral (
        select v.version_number, v.change_summary, v.change_source, v.created_at
        from (${numbers}) page
        join prompt_versions v on v.prompt_id = p.id and v.version_number = page.version_number
      ) v on true
      order by v.version_number desc`
  })

/** Selects a version. `parent_version_id` is null if the parent is a version of another prompt. */
export const selectVersion = (
  workspace: WorkspaceId,
  id: PromptId,
  number: VersionNumber,
  oldest: Timestamp | undefined
): Statement =>
  makeStatement(
    workspace,
    1,
    (parameter) => `select v.id, v.prompt_id, v.version_number, v.content, v.change_summary, v.change_source,
        parent.id as parent_version_id, v.metadata, v.created_at
      from prompts p join prompt_versions v on v.prompt_id = p.id
      left join ${findById("prompt_versions", "v.parent_version_id", ["prompt_id"])} parent on parent.prompt_id = p.id
      where p.workspace_id = ${parameter(workspace)} and p.id = ${parameter(id)}
        and v.version_number = ${parameter(number)}
        ${oldest === undefined ? "" : `and v.created_at >= ${parameter(oldest)}`}`
  )
