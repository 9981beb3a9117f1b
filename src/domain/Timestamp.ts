import * as Schema from "effect/Schema"

const pattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const jsonSchema = { format: "date-time", pattern: pattern.source }

/**
 * An instant as the API writes it: ISO 8601, UTC, milliseconds (SPEC.md section 2). Its text order is its
 * order in time, and domain, row and wire all hold this text.
 */
export const Timestamp = Schema.String.check(
  Schema.isPattern(pattern, {
    message: "must be an ISO 8601 UTC timestamp with milliseconds",
    toJsonSchema: () => jsonSchema
  })
)
  .pipe(Schema.brand("Timestamp"))
  .annotate({ description: "ISO 8601, UTC, with milliseconds." })
export type Timestamp = typeof Timestamp.Type

/** The last instant that four digits of year can write, in milliseconds since the epoch. */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
/** PostgreSQL writes no year 0. */
const earliest = new Date(0).setUTCFullYear(1, 0, 1)

/** Whether a Timestamp can hold an instant, given in milliseconds since the epoch. */
export const isRepresentable = (millis: number): boolean => millis >= earliest && millis <= latest

/** Milliseconds since the epoch as a Timestamp, held within the years 0001 to 9999. */
export const toTimestamp = (millis: number): Timestamp =>
  new Date(Math.min(Math.max(millis, earliest), latest)).toISOString() as Timestamp
