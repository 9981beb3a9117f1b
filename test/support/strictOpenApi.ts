// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document has parts of any shape
type Json = any

/** Returns the schema of an error code that allows only the codes of this version. */
const closeCode = ({ examples, ...schema }: Json): Json => ({ ...schema, examples, enum: examples })

/**
 * Returns an OpenAPI document that allows only the fields and the error codes that this version has. The document
 * of the service allows more, because later versions may add some.
 */
export const toStrictOpenApi = (part: Json): Json => {
  if (Array.isArray(part)) return part.map(toStrictOpenApi)
  if (typeof part !== "object" || part === null) return part
  const strict = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, toStrictOpenApi(value)]))
  if (part.type !== "object" || part.properties === undefined) return strict
  const { code } = strict.properties
  const properties = code === undefined ? strict.properties : { ...strict.properties, code: closeCode(code) }
  return { ...strict, properties, additionalProperties: false }
}
