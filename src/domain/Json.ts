export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for an object that is neither null nor an array. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
