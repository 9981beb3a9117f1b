import * as Schema from "effect/Schema"

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const jsonSchema = { format: "uuid", pattern: pattern.source }

/** A UUID in its one form here: 8-4-4-4-12 hexadecimal digits, lower case. */
export const Uuid = Schema.String.check(
  Schema.isPattern(pattern, { message: "must be a UUID", toJsonSchema: () => jsonSchema })
)

/**
 * Reads a UUID that somebody typed: any case in, lower case out; braces, missing dashes and the like
 * give `undefined` (DESIGN.md section 5).
 */
export const parseUuid = (text: string): string | undefined => {
  if (text.length !== 36) return undefined
  const lower = text.toLowerCase()
  return pattern.test(lower) ? lower : undefined
}
