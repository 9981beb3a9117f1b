import type { PromptFilter } from "../../application/PromptRepo.ts"
import { maxPerPage, offset, type Page, reaches } from "../../domain/Page.ts"
import type { PromptId, WorkspaceId } from "../../domain/Prompt.ts"
import { maxResolvedBytes, maxSourceBytes } from "../../domain/Resolution.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { VersionNumber } from "../../domain/Version.ts"
import type { Statement } from "./Database.ts"

/** Builds a statement whose parameters are numbered in the order in which its text asks for them. */
const statement = (build: (parameter: (value: unknown) => string) => string): Statement => {
  const params: Array<unknown> = []
  return { text: build((value) => `$${params.push(value)}`), params }
}

/**
 * One page of the rows of `ordered`. PostgreSQL refuses to skip more than any list here could hold. The limit in plain
 * sight keeps its plan for parameters it does not know yet from expecting a tenth of the list.
 */
const pageOf = (ordered: string, page: Page, parameter: (value: unknown) => string): string =>
  reaches(page)
    ? `select * from (
        ${ordered} limit ${parameter(page.per_page)} offset ${parameter(offset(page))}
      ) page limit ${maxPerPage}`
    : `${ordered} limit 0`

const summaryColumns = [
  "id",
  "title",
  "description",
  "prompt_type",
  "target_model",
  "intent",
  "current_version",
  "created_at",
  "updated_at"
]
  .map((column) => `p.${column}`)
  .join(", ")

type Parameter = (value: unknown) => string

/**
 * The ids of the prompts that pass a filter, in the list's order. A text for each combination of filters, so that each
 * finds its index.
 */
const matchingPrompts = (own: string, filter: PromptFilter, parameter: Parameter): string => {
  const conditions: Array<string> = []
  if (filter.type !== undefined) conditions.push(`and p.prompt_type = ${parameter(filter.type)}`)
  if (filter.folder_id !== undefined) {
    const folder = parameter(filter.folder_id)
    conditions.push(
      `and p.folder_id = ${folder}`,
      `and exists (select from folders f where f.id = ${folder} and f.workspace_id = ${own})`
    )
  }
  const listed =
    filter.tag === undefined
      ? `select p.id, p.updated_at from prompts p where p.workspace_id = ${own} and not p.is_archived`
      : `select p.prompt_id as id, p.listed_at as updated_at from prompt_tags p where p.listed_at is not null
          and p.workspace_id = ${own} and p.tag_id = (
            select t.id from tags t where t.workspace_id = ${own} and t.name = ${parameter(filter.tag)}
          )`
  // To count in order too keeps PostgreSQL to the index, where it might prefer to read a table of short prompts whole.
  return `${listed} ${conditions.join(" ")} order by updated_at desc, id desc`
}

/**
 * The total and one page. Both come from one index, in its order; only the page's own rows are fetched. One row without
 * a prompt when the page is empty.
 */
export const listPrompts = (workspace: WorkspaceId, filter: PromptFilter, page: Page): Statement =>
  statement((parameter) => {
    const own = parameter(workspace)
    const matching = matchingPrompts(own, filter, parameter)
    return `select total.count as total, ${summaryColumns}
      from (select count(*)::int from (${matching} offset 0) matching) total
      left join (
        (${pageOf(matching, page, parameter)}) page
        join prompts p on p.id = page.id and p.workspace_id = ${own}
      ) on true
      order by page.updated_at desc, page.id desc`
  })

/** One page alone. */
export const pageOfPrompts = (workspace: WorkspaceId, filter: PromptFilter, page: Page): Statement =>
  statement((parameter) => {
    const own = parameter(workspace)
    return `select ${summaryColumns}
      from (${pageOf(matchingPrompts(own, filter, parameter), page, parameter)}) page
      join prompts p on p.id = page.id and p.workspace_id = ${own}
      order by page.updated_at desc, page.id desc`
  })

/** A prompt of a workspace. */
export interface OwnPrompt {
  readonly workspace: WorkspaceId
  readonly id: PromptId
}

/**
 * How large a row may be that is sent among others, in bytes. A larger row is sent with nulls in place of its columns,
 * `id` among them, and is then read alone: a statement with `unbounded`.
 */
const inlineBytes = 256 * 1024
/** The same for JSON, in the bytes that it takes in the table: how large it is as text is not known without reading it. */
const inlineStoredBytes = 64 * 1024
export const unbounded = 2 ** 31 - 1

/** The prompts `whole` that are asked for by `$1` and `$2`, numbered from 1 as `asked.n`. */
const askedPrompts = `unnest($1::uuid[], $2::uuid[]) with ordinality asked (workspace_id, id, n)
    join prompts whole on whole.workspace_id = asked.workspace_id and whole.id = asked.id`

/** The row of `whole` as `row`, or nulls where the condition is false. The sizes of texts are known without reading them. */
const rowIf = (condition: string, row: string): string =>
  `left join lateral (select whole.* where ${condition}) ${row} on true`

const bytesOf = (...columns: ReadonlyArray<string>): string =>
  columns.map((column) => `octet_length(whole.${column})::bigint`).join(" + ")

const idsOf = (prompts: ReadonlyArray<OwnPrompt>): ReadonlyArray<string> => [
  `{${prompts.map(({ workspace }) => workspace).join()}}`,
  `{${prompts.map(({ id }) => id).join()}}`
]

/**
 * Prompts with their folders and tags, as far as they are the workspaces' own; `n` is a prompt's place in `prompts`.
 * Only `n` of a prompt that is larger than `maxBytes`.
 */
export const getPrompts = (prompts: ReadonlyArray<OwnPrompt>, maxBytes = inlineBytes): Statement => ({
  text: `select asked.n::int, ${summaryColumns}, p.current_content, f.id as folder_id, p.is_favorite, p.is_archived,
      p.sort_order,
      coalesce((
        select json_agg(json_build_object('id', t.id, 'name', t.name, 'color', t.color) order by t.name collate "C")
        from prompt_tags pt join tags t on t.id = pt.tag_id and t.workspace_id = p.workspace_id
        where pt.prompt_id = p.id
      ), '[]') as tags
    from ${askedPrompts}
    ${rowIf(`${bytesOf("title", "description", "target_model", "intent", "current_content")} <= $3`, "p")}
    left join folders f on f.id = p.folder_id and f.workspace_id = p.workspace_id`,
  params: [...idsOf(prompts), maxBytes]
})

/**
 * Prompts and the contents and overrides of their fragments, each as an array in their order; `n` is a prompt's place
 * in `prompts`. Only `n` and `too_large`
 *
 * - where what is resolved is certainly too large, which `too_large` says: `current_content` and what no binding can
 *   shorten exceed `maxResolvedBytes`, or the fragments or their overrides exceed `maxSourceBytes`;
 * - where all of it together is larger than `maxBytes`. How large overrides are as text is only looked at where
 *   `maxBytes` is `unbounded`, since it takes reading them.
 */
export const getSources = (prompts: ReadonlyArray<OwnPrompt>, maxBytes = inlineBytes): Statement => ({
  text: `select asked.n::int, p.id, p.title, p.prompt_type, p.target_model, p.current_content,
      source.contents, source.overrides, source.too_large
    from ${askedPrompts}
    cross join lateral (
      select coalesce(array_agg(content order by position, id) filter (where fits), '{}') as contents,
        coalesce(array_agg(variable_overrides::text order by position, id) filter (where fits), '{}') as overrides,
        coalesce(bool_or(too_large), octet_length(whole.current_content) > ${maxResolvedBytes}) as too_large,
        coalesce(bool_and(fits), ${bytesOf("title", "target_model", "current_content")} <= $3) as fits
      from (
        select *, not too_large and small as fits
        from (
          select pf.id, pf.position, pf.variable_overrides, f.content,
            octet_length(whole.current_content) + sum(2 + case
              when pg_column_size(pf.variable_overrides) > 16 then 0
              when pf.variable_overrides = '{}' then octet_length(f.content)
              else 0
            end) over () > ${maxResolvedBytes}
              or sum(octet_length(f.content)) over () > ${maxSourceBytes}
              or sum(case when $3 = ${unbounded} then octet_length(pf.variable_overrides::text) end) over ()
                > ${maxSourceBytes} is true as too_large,
            $3 = ${unbounded} or (
              ${bytesOf("title", "target_model", "current_content")} + sum(octet_length(f.content)) over () <= $3
              and sum(pg_column_size(pf.variable_overrides)) over () <= ${inlineStoredBytes}
            ) as small
          from prompt_fragments pf join fragments f on f.id = pf.fragment_id and f.workspace_id = whole.workspace_id
          where pf.prompt_id = whole.id
        ) measured
      ) decided
    ) source
    ${rowIf("source.fits and not source.too_large", "p")}`,
  params: [...idsOf(prompts), maxBytes]
})

/** The total and one page, as for prompts; no row at all without the prompt. */
export const listVersions = (
  workspace: WorkspaceId,
  id: PromptId,
  oldest: Timestamp | undefined,
  page: Page
): Statement =>
  statement((parameter) => {
    const prompt = `p.workspace_id = ${parameter(workspace)} and p.id = ${parameter(id)}`
    const visible = `prompt_versions v where v.prompt_id = p.id${
      oldest === undefined ? "" : ` and v.created_at >= ${parameter(oldest)}`
    }`
    return `select total.count as total, v.version_number, v.change_summary, v.change_source, v.created_at
      from prompts p
      cross join lateral (select count(*)::int from ${visible}) total
      left join lateral (
        ${pageOf(`select v.version_number from ${visible} order by v.version_number desc`, page, parameter)}
      ) page on true
      left join prompt_versions v on v.prompt_id = p.id and v.version_number = page.version_number
      where ${prompt}
      order by page.version_number desc`
  })

const isVersionWithin = (maxBytes: string): string =>
  `(${maxBytes} = ${unbounded} or (
    ${bytesOf("content", "change_summary", "change_source")} <= ${maxBytes}
    and pg_column_size(whole.metadata) <= ${inlineStoredBytes}
  ))`

/** A version; a parent that is another prompt's is left out. Nulls alone where it is larger than `maxBytes`. */
export const getVersion = (
  workspace: WorkspaceId,
  id: PromptId,
  number: VersionNumber,
  oldest: Timestamp | undefined,
  maxBytes = inlineBytes
): Statement =>
  statement(
    (parameter) => `select v.id, v.prompt_id, v.version_number, v.content, v.change_summary, v.change_source,
        parent.id as parent_version_id, v.metadata, v.created_at
      from prompts p join prompt_versions whole on whole.prompt_id = p.id
      ${rowIf(isVersionWithin(parameter(maxBytes)), "v")}
      left join prompt_versions parent on parent.id = v.parent_version_id and parent.prompt_id = p.id
      where p.workspace_id = ${parameter(workspace)} and p.id = ${parameter(id)}
        and whole.version_number = ${parameter(number)}
        ${oldest === undefined ? "" : `and whole.created_at >= ${parameter(oldest)}`}`
  )
