import * as Predicate from "effect/Predicate"

/** A part of a JSON Schema. */
type Part = unknown

/**
 * Returns a schema of responses without `additionalProperties: false` anywhere: later versions may add fields to
 * every object, and a validator with an older document must accept them.
 */
export const openSchema = (part: Part): Part => {
  if (Array.isArray(part)) return part.map(openSchema)
  if (!Predicate.isObject(part)) return part
  return Object.fromEntries(
    Object.entries(part).flatMap(([key, value]) =>
      key === "additionalProperties" && value === false ? [] : [[key, openSchema(value)]]
    )
  )
}
