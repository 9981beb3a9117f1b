import * as Schema from "effect/Schema"
import type { PromptFilter } from "../../../../application/ports/PromptRepo.ts"
import { maxPerPage, offset, type Page, type PageOfItems } from "../../../../domain/Page.ts"
import { PromptSummary } from "../../../../domain/Prompt.ts"
import type { PromptReference } from "../../../../domain/PromptName.ts"
import { maxInt32 } from "../../../../domain/Sizes.ts"
import type { Timestamp } from "../../../../domain/Timestamp.ts"
import { VersionSummary } from "../../../../domain/Version.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { type AddParameter, makeStatement, type Row, type Statement } from "../driver/Query.ts"
import { nameColumns, toIdExpression } from "./NameQueries.ts"

/**
 * Selects one page of the rows of `ordered`. Limits the offset to `maxInt32`, which is beyond the end of any list,
 * because PostgreSQL can reject a larger offset. Without the literal LIMIT, the generic plan would assume that a page
 * has 10% of the rows.
 */
const paginate = (ordered: string, page: Page, parameter: AddParameter): string =>
  `select * from (
    ${ordered} limit ${parameter(page.per_page)} offset ${parameter(Math.min(offset(page), maxInt32))}
  ) page limit ${Math.max(maxPerPage, page.per_page)}`

export const toColumns = (names: ReadonlyArray<string>): string => names.map((name) => `p.${name}`).join(", ")

const summaryColumns = toColumns(Object.keys(PromptSummary.fields))

/**
 * Selects the prompts `p` whose ids the query `ids` returns. Compares `p.workspace_id` with a column instead of the
 * parameter. With the parameter, the generic plan would scan the workspace once per row if workspaces are small.
 */
const selectPage = (ids: string, columns = summaryColumns): string =>
  `select ${columns}
      from (${ids}) page join prompts p on p.id = page.id and p.workspace_id = page.workspace_id`

/** Returns false if no prompt can match the filter, because PostgreSQL cannot store the name of the filter's tag. */
export const canMatch = ({ tag }: PromptFilter): boolean =>
  tag === undefined || (!tag.includes("\0") && tag.isWellFormed())

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
  // The query for the count is ordered, too. Without the order, PostgreSQL could read the whole table instead of the
  // index if the prompts are short.
  return `${listed} ${conditions.join(" ")} order by updated_at desc, id desc`
}

const decodeTotal = Schema.decodeUnknownSync(Schema.Struct({ total: Schema.Int }))

/** Returns the decoder of a page with its total. The single row of an empty page has a null in `idColumn`. */
const makePageDecoder = <A>(item: Schema.Decoder<A>, idColumn: string) => {
  const decodeItems = Schema.decodeUnknownSync(Schema.Array(item))
  return (rows: ReadonlyArray<Row>): PageOfItems<A> => ({
    items: decodeItems(rows.filter((row) => row[idColumn] !== null)),
    total: decodeTotal(rows[0]).total
  })
}

/**
 * Selects the total and one page of prompts. The count and the page both read the same index, in the order of the
 * index. PostgreSQL fetches only the rows of the page from the table. If the page is empty, selects one row that has
 * the total and no prompt.
 */
export const selectPrompts = (workspace: WorkspaceId, filter: PromptFilter, page: Page): Statement =>
  makeStatement(workspace, (parameter) => {
    const workspaceParam = parameter(workspace)
    const matching = selectMatching(workspaceParam, filter, parameter)
    return `select total.count as total, p.*
      from (select count(*)::int from (${matching} offset 0) matching) total
      left join (${selectPage(paginate(matching, page, parameter))}) p on true
      order by p.updated_at desc, p.id desc`
  })

export const decodePromptList = makePageDecoder(PromptSummary, "id")

/** Selects one page of prompts without the total. */
export const selectPromptPage = (
  workspace: WorkspaceId,
  filter: PromptFilter,
  page: Page,
  columns = summaryColumns
): Statement =>
  makeStatement(workspace, (parameter) => {
    const workspaceParam = parameter(workspace)
    const ids = paginate(selectMatching(workspaceParam, filter, parameter), page, parameter)
    return `${selectPage(ids, columns)} order by p.updated_at desc, p.id desc`
  })

/** Selects one page of prompts with the columns that `decodeNamed` reads. */
export const selectNamed = (workspace: WorkspaceId, page: Page): Statement =>
  selectPromptPage(workspace, {}, page, `p.id, p.title, p.description, ${nameColumns}`)

export const decodePromptPage = Schema.decodeUnknownSync(Schema.Array(PromptSummary))

/** Selects one page of versions, with the total in each row. Selects no row if the prompt does not exist. */
export const selectVersions = (
  workspace: WorkspaceId,
  reference: PromptReference,
  oldest: Timestamp | undefined,
  page: Page
): Statement =>
  makeStatement(workspace, (parameter) => {
    const prompt = `p.workspace_id = ${parameter(workspace)} and p.id = ${toIdExpression(reference, workspace, parameter)}`
    const visible = `prompt_versions v where v.prompt_id = p.id${
      oldest === undefined ? "" : ` and v.created_at >= ${parameter(oldest)}`
    }`
    const numbers = paginate(
      `select v.version_number from ${visible} order by v.version_number desc`,
      page,
      parameter
    )
    // Without OFFSET 0, PostgreSQL could count the versions again for each row of the page.
    return `select p.total, v.version_number, v.change_summary, v.change_source, v.created_at
      from (select p.id, (select count(*)::int from ${visible}) as total from prompts p where ${prompt} offset 0) p
      left join lateral (
        select v.version_number, v.change_summary, v.change_source, v.created_at
        from (${numbers}) page
        join prompt_versions v on v.prompt_id = p.id and v.version_number = page.version_number
      ) v on true
      order by v.version_number desc`
  })

export const decodeVersionList = makePageDecoder(VersionSummary, "version_number")
