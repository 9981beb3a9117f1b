import { getElapsed } from "../cache/Age.ts"
import type { CacheResult } from "../cache/Cache.ts"
import { toResult } from "../Results.ts"
import type { UnknownJson } from "./Transport.ts"

/** Renders the defined parameters in alphabetical order, so that equal queries share a cache entry. */
export const toQuery = (params: object): string => {
  const defined = Object.entries(params).filter(([, value]) => value !== undefined)
  return defined.length ? `?${new URLSearchParams(defined.sort())}` : ""
}

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isSingleEnvelope = (body: UnknownJson): boolean => isObject(body?.data)

export const isPageEnvelope = (body: UnknownJson): boolean =>
  Array.isArray(body?.data) &&
  body.data.every(isObject) &&
  [body.meta?.page, body.meta?.per_page, body.meta?.total].every(Number.isInteger) &&
  body.meta.per_page > 0

/** Returns true for a page of resolved prompts. `meta.prompts` has the name and the version of each prompt. */
export const isResolvedPage = (body: UnknownJson): boolean =>
  isPageEnvelope(body) && body.meta.prompts?.length === body.data.length

const findVersion = ({ data }: UnknownJson): number | undefined => data.current_version ?? data.version_number

/** Returns the envelope of a read, with its source and the details of its response. */
export const toServiceResult = <E>({ text, info, source }: CacheResult, envelope?: unknown): E => {
  const parsed = (envelope ?? JSON.parse(text)) as object
  const { etag, requestId, status, headers } = info
  return toResult(parsed, {
    source,
    version: info.version ?? findVersion(parsed),
    etag,
    age: Math.round(getElapsed(info.confirmedAt)),
    requestId,
    response: { status, headers }
  })
}
