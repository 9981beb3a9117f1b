/** Parsed JSON of unknown shape. Every property access must allow for `undefined`. */
// biome-ignore lint/suspicious/noExplicitAny: `unknown` would need a type guard for each property access.
export type UnknownJson = any

const isText = (value: unknown): boolean => typeof value === "string"

/** Returns true for an object that is not an array. */
export const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns true if a body is the envelope of a single resource. */
export const isSingleEnvelope = (body: UnknownJson): boolean => isObject(body?.data)

/** Returns true if a body is the envelope of a resolved prompt. */
export const isResolvedEnvelope = (body: UnknownJson): boolean => isText(body?.data?.resolved_content)

export const isPageEnvelope = (body: UnknownJson): boolean =>
  Array.isArray(body?.data) &&
  body.data.every(isObject) &&
  [body.meta?.page, body.meta?.per_page, body.meta?.total].every(Number.isInteger) &&
  body.meta.per_page > 0

/** Returns true if a body is a page of resolved prompts. `meta.prompts` has the name and the version of each prompt. */
export const isResolvedPage = (body: UnknownJson): boolean =>
  isPageEnvelope(body) &&
  body.data.every(
    (prompt: UnknownJson, index: number) =>
      isText(prompt.resolved_content) && isText(body.meta.prompts?.[index]?.name)
  )
