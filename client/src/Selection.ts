import { subtract, type Instant } from "./cache/Age.ts"
import type { CacheEntry } from "./cache/Cache.ts"
import { getStatus, PromptClientError } from "./Errors.ts"
import { type PromptReference, toName } from "./PromptReference.ts"
import type { ListParams, PageParams } from "./Resources.ts"
import { toQuery } from "./transport/Envelopes.ts"
import type { ResponseInfo, SuccessResponse, UnknownJson } from "./transport/Transport.ts"

/** Selects the prompts that match all filters; `{}` selects all prompts. */
export type PromptFilter = Omit<ListParams, keyof PageParams>

/** Selects prompts: those that match a filter, or those with the given names, ids or references. */
export type PromptSelection = PromptFilter | ReadonlyArray<string | PromptReference>

/** A selection by different names and ids, or by a filter. */
export interface NormalSelection {
  readonly names?: ReadonlyArray<string>
  readonly filter?: PromptFilter
}

export const normalizeSelection = (selection: PromptSelection): NormalSelection =>
  isList(selection) ? { names: [...new Set(selection.map(toName))] } : { filter: selection }

const isList = (selection: PromptSelection): selection is Exclude<PromptSelection, PromptFilter> =>
  Array.isArray(selection)

/** The largest number of prompts in one response of the service. */
export const maxPageSize = 100

/** Returns the number of pages of a selection. `total` is the number of prompts that match the filter. */
export const countPages = ({ names }: NormalSelection, size: number, total: number): number =>
  Math.ceil((names?.length ?? total) / size)

/** Returns the target of a page. Pages are numbered from 1. */
export const toPageTarget = ({ names, filter }: NormalSelection, page: number, size: number): string => {
  const query = names
    ? `?${new URLSearchParams(names.slice((page - 1) * size, page * size).map((name): [string, string] => ["prompt", name]))}`
    : toQuery({ ...filter, page, per_page: size })
  return `/api/v1/resolved${query}`
}

/** Returns true if a response or its request would be too large, so that a smaller page may succeed. */
export const isTooLarge = (error: unknown): boolean => [414, 422, 431].includes(getStatus(error)!)

/** A resolved prompt of a page. */
export interface PromptText {
  readonly id: string
  /** The body that a request for this prompt alone would return. */
  readonly text: string
  readonly version: number | undefined
}

/** Returns the prompts of a page, by the names or ids that were asked for or, with a filter, by their names. */
export const toTexts = ({ data, meta }: UnknownJson): Map<string, PromptText> =>
  new Map(
    data.map((prompt: UnknownJson, index: number) => {
      const { name, version } = meta.prompts[index]
      return [name, { id: prompt.id, text: JSON.stringify({ data: prompt }), version }]
    })
  )

/** Makes the entry of a prompt of a page. The ETag of the page is not the ETag of the prompt. */
export const toPromptEntry = (
  { text, version }: PromptText,
  info: ResponseInfo,
  confirmedAt: Instant
): CacheEntry => ({ text, info: { ...info, etag: undefined, version }, confirmedAt })

/** A page, and the start of its request. */
export interface SelectionPage {
  readonly response: SuccessResponse
  readonly requestedAt: Instant
}

/** Maximum number of times that a selection is read because it changes or its pages are too large. */
const maxReads = 20

/**
 * Reads all prompts of a selection. If the list of prompts changes between the pages, or a page is too large, reads the
 * selection again.
 */
export const readSelection = async (
  selection: NormalSelection,
  readPage: (target: string) => Promise<SelectionPage>
): Promise<Map<string, CacheEntry>> => {
  let size = maxPageSize
  for (let reads = 0; reads < maxReads; reads++) {
    try {
      const entries = new Map<string, CacheEntry>()
      const totals = new Set<number>()
      let count = 0
      for (let page = 1, total = 1; page <= countPages(selection, size, total); page++) {
        const { response, requestedAt } = await readPage(toPageTarget(selection, page, size))
        const { info, envelope } = response
        const texts = toTexts(envelope)
        for (const [name, text] of texts)
          entries.set(name, toPromptEntry(text, info, subtract(requestedAt, info.age)))
        count += texts.size
        total = (envelope as UnknownJson).meta.total
        totals.add(total)
      }
      // A prompt that moves to another page while the list is read occurs twice, or the total changes.
      if (selection.names || (entries.size === count && totals.size === 1)) return entries
    } catch (error) {
      if (!isTooLarge(error) || size === 1) throw error
      size = Math.ceil(size / 2)
    }
  }
  throw new PromptClientError("The selected prompts change too often; try again later")
}
