import * as Schema from "effect/Schema"

const pattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const jsonSchema = { format: "date-time", pattern: pattern.source }

/**
 * An ISO 8601 timestamp in UTC with milliseconds (specification 2). Text order is time order. The domain, the rows and the responses
 * all use this text.
 */
export const Timestamp = Schema.String.check(
  Schema.isPattern(pattern, {
    message: "must be an ISO 8601 UTC timestamp with milliseconds",
    toJsonSchema: () => jsonSchema
  })
)
  .pipe(Schema.brand("Timestamp"))
  .annotate({ description: "ISO 8601 timestamp in UTC with milliseconds." })
export type Timestamp = typeof Timestamp.Type

/** The last instant with a four-digit year, in milliseconds since the epoch. */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
/** The first instant of the year 1: there is no year 0. */
const earliest = new Date(0).setUTCFullYear(1, 0, 1)

/** Returns true if a Timestamp can represent an instant (milliseconds since the epoch). */
export const isRepresentable = (millis: number): boolean => millis >= earliest && millis <= latest

/** Converts milliseconds since the epoch to a Timestamp, clamped to the years 0001 to 9999. */
export const toTimestamp = (millis: number): Timestamp =>
  new Date(Math.min(Math.max(millis, earliest), latest)).toISOString() as Timestamp
