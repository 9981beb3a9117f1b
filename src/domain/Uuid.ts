import * as Schema from "effect/Schema"

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const jsonSchema = { format: "uuid", pattern: pattern.source }

/** A UUID in canonical form: 8-4-4-4-12 lowercase hexadecimal digits. */
export const Uuid = Schema.String.check(
  Schema.isPattern(pattern, { message: "must be a UUID", toJsonSchema: () => jsonSchema })
).annotate({ examples: ["cef02dd3-514f-5723-8852-d3305a2e66a8"] })

/**
 * Parses a UUID in uppercase or lowercase letters, and returns it in lowercase. Returns `undefined` for any other form,
 * such as a UUID in braces or without dashes.
 */
export const parseUuid = (text: string): string | undefined => {
  if (text.length !== 36) return undefined
  const lower = text.toLowerCase()
  return pattern.test(lower) ? lower : undefined
}
