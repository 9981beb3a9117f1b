import { requireKnown } from "./Options.ts"
import { type PromptReference, toName } from "./PromptReference.ts"
import type { ListParams, PageParams } from "./Resources.ts"
import { isObject } from "./transport/Envelopes.ts"

/** Selects the prompts that match all filters; `{}` selects all prompts. */
export type PromptFilter = Omit<ListParams, keyof PageParams>

/** Selects prompts: those that match a filter, or those with the given names, ids or references. */
export type PromptSelection = PromptFilter | ReadonlyArray<string | PromptReference>

/** A selection by distinct names and ids, or by a filter. */
export interface NormalSelection {
  readonly names?: ReadonlyArray<string>
  readonly filter?: PromptFilter
}

/** Normalizes a selection. Throws a `TypeError` if the selection or one of its prompts has the wrong type. */
export const normalizeSelection = (selection: PromptSelection): NormalSelection => {
  if (Array.isArray(selection)) return { names: [...new Set(selection.map(toName))] }
  if (isObject(selection) && !(Symbol.iterator in selection)) return { filter: selection as PromptFilter }
  throw new TypeError("selection must be a filter or an array")
}

const knownParams: Readonly<Record<keyof ListParams, true>> = {
  folder_id: true,
  page: true,
  per_page: true,
  tag: true,
  type: true
}

/** Renders the defined parameters in alphabetical order, so that equal queries share a cache entry. */
export const toQuery = (params: object): string => {
  requireKnown(params, knownParams)
  const defined = Object.entries(params).filter(([, value]) => value !== undefined)
  return defined.length ? `?${new URLSearchParams(defined.sort())}` : ""
}

/** The largest number of prompts in one response of the service. */
export const maxPageSize = 100

/** Returns the target of a page. Pages are numbered from 1. */
export const toPageTarget = ({ names, filter }: NormalSelection, page: number, size: number): string => {
  const query = names
    ? `?${new URLSearchParams(names.slice((page - 1) * size, page * size).map((name): [string, string] => ["prompt", name]))}`
    : toQuery({ ...filter, page, per_page: size })
  return `/api/v1/resolved${query}&names=true`
}
