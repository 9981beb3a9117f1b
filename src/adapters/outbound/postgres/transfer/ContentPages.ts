import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { PromptId, TagId } from "../../../../domain/Prompt.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { execute } from "../driver/Query.ts"
import * as queries from "./ExportQueries.ts"

/** Maximum number of rows of a list, and of bytes of rows, that are read at once. */
const maxPageRows = 200
const maxPageBytes = 4 * 1024 * 1024

interface Sized {
  readonly bytes: number
}

/** Returns true if rows of this size are too large to be read at once. */
export const exceedsPage = (bytes: number): boolean => bytes > maxPageBytes

/** Splits rows into pages in their order. A row that is larger than a page is a page by itself. */
export const splitIntoPages = <A extends Sized>(
  rows: ReadonlyArray<A>,
  maxRows = maxPageRows
): ReadonlyArray<ReadonlyArray<A>> => {
  const pages: Array<Array<A>> = []
  let bytes = 0
  for (const row of rows) {
    const page = pages.at(-1)
    if (page === undefined || page.length === maxRows || exceedsPage(bytes + row.bytes)) {
      pages.push([row])
      bytes = row.bytes
    } else {
      page.push(row)
      bytes += row.bytes
    }
  }
  return pages
}

export const toIds = (rows: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> =>
  rows.map(({ id }) => id)

/** Runs `use` for the rows of a workspace's list, page by page ordered by id. */
export const forEachPage = Effect.fnUntraced(function* <A, E, R>(
  sql: PgClient,
  workspace: WorkspaceId,
  list: queries.WorkspaceTable<A>,
  use: (rows: ReadonlyArray<A>) => Effect.Effect<void, E, R>
) {
  for (let after: string | undefined; ; ) {
    const sized: ReadonlyArray<queries.SizedRow> = queries.decodeSizes(
      yield* execute(sql, queries.selectSizes(list, workspace, after))
    )
    for (const page of splitIntoPages(sized)) {
      yield* use(list.decode(yield* execute(sql, queries.selectRows(list, workspace, toIds(page)))))
    }
    if (sized.length < queries.sizePageRows) return
    after = sized.at(-1)?.id
  }
})

/** Runs `use` for the rows of one prompt's list, page by page in their order. */
export const forEachChildPage = Effect.fnUntraced(function* <A, E, R>(
  sql: PgClient,
  workspace: WorkspaceId,
  promptId: PromptId,
  list: queries.ChildList<A>,
  use: (items: ReadonlyArray<A>) => Effect.Effect<void, E, R>
) {
  for (let after: queries.RankedRow | undefined; ; ) {
    const sized: ReadonlyArray<queries.RankedRow> = queries.decodeRankedRows(
      yield* execute(sql, queries.selectChildPage(list, promptId, after))
    )
    for (const page of splitIntoPages(sized, queries.sizePageRows)) {
      const statement = queries.selectChildren(list, workspace, "id", toIds(page))
      yield* use(list.decode(yield* execute(sql, statement)).map(({ item }) => item))
    }
    if (sized.length < queries.sizePageRows) return
    after = sized.at(-1)
  }
})

/** Returns the items of a prompt, in their order. */
type ItemsByPrompt<A> = (promptId: PromptId) => ReadonlyArray<A>

const groupByPrompt = <A>(children: ReadonlyArray<queries.Child<A>>): ItemsByPrompt<A> => {
  const groups = Map.groupBy(children, ({ promptId }) => promptId)
  return (promptId) => (groups.get(promptId) ?? []).map(({ item }) => item)
}

/** Reads the items of several prompts. */
export const readChildren = <A>(
  sql: PgClient,
  workspace: WorkspaceId,
  list: queries.ChildList<A>,
  promptIds: ReadonlyArray<string>
) =>
  Effect.map(execute(sql, queries.selectChildren(list, workspace, "prompt_id", promptIds)), (rows) =>
    groupByPrompt(list.decode(rows))
  )

/** Reads the tags of several prompts. */
export const readTags = Effect.fnUntraced(function* (
  sql: PgClient,
  workspace: WorkspaceId,
  promptIds: ReadonlyArray<string>
) {
  const rows = yield* execute(sql, queries.selectTags(workspace, promptIds))
  const tags = groupByPrompt(queries.decodeTags(rows))
  return (promptId: PromptId): ReadonlyArray<TagId> => tags(promptId).map(({ id }) => id)
})

/** Reads the size of several prompts' rows in a list, in bytes. */
export const readChildSizes = Effect.fnUntraced(function* (
  sql: PgClient,
  list: queries.ChildList<unknown>,
  promptIds: ReadonlyArray<string>
) {
  const rows = queries.decodeSizes(yield* execute(sql, queries.selectChildSizes(list, promptIds)))
  const sizes = new Map(rows.map(({ id, bytes }) => [id, bytes]))
  return (promptId: PromptId): number => sizes.get(promptId) ?? 0
})
