import type { List } from "./Prompts.ts"
import type { ListParams, Page, PageParams, PromptResponse } from "./Resources.ts"
import { toCall } from "./Results.ts"
import { toQuery } from "./transport/Envelopes.ts"

/**
 * Reads the first page of a list. Iterating over the result reads the other pages when they are needed. An item that
 * moves to a later page meanwhile occurs only once.
 */
export const readList = <A>(
  readPage: (query: string) => Promise<Page<A>>,
  params: ListParams & PageParams = {}
): List<A> => {
  const firstPage = readPage(toQuery(params))
  return Object.assign(toCall<Page<A>, PromptResponse>(firstPage), {
    async *[Symbol.asyncIterator]() {
      const seen = new Set<unknown>()
      for (let { data, meta } = await firstPage, page = params.page ?? 1; ; ) {
        for (const item of data) {
          const { id, version_number } = item as { id?: string; version_number?: number }
          const identity = id ?? version_number
          if (!seen.has(identity)) yield item
          seen.add(identity)
        }
        if (data.length === 0 || page * meta.per_page >= meta.total) return
        ;({ data, meta } = await readPage(toQuery({ ...params, page: ++page })))
      }
    }
  })
}
