import type { UnknownJson } from "./Transport.ts"

/** Returns true for an object that is not an array. */
export const isObject = (value: unknown): boolean =>
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
