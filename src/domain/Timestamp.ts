import * as Schema from "effect/Schema"

const pattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const jsonSchema = { format: "date-time", pattern: pattern.source }

/**
 * An ISO 8601 timestamp in UTC with milliseconds (specification 2). The alphabetical order of timestamps is their order
 * in time. Workspaces, decoded database rows and responses contain their times in this form.
 */
export const Timestamp = Schema.String.check(
  Schema.isPattern(pattern, {
    message: "must be an ISO 8601 UTC timestamp with milliseconds",
    toJsonSchema: () => jsonSchema
  })
)
  .annotate({ examples: ["2026-05-03T09:30:00.000Z"] })
  .pipe(Schema.brand("Timestamp"))
  .annotate({ description: "ISO 8601 timestamp in UTC with milliseconds." })
export type Timestamp = typeof Timestamp.Type

/** The last instant with a four-digit year, in milliseconds since the epoch. */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
/** The first instant of the year 1, in milliseconds since the epoch. PostgreSQL has no year 0. */
const earliest = new Date(0).setUTCFullYear(1, 0, 1)

const iso8601 = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/u

/** The pattern of the times that `parseTime` parses. Also matches times that do not exist, such as February 30. */
export const timePattern = iso8601.source

/** Parses an ISO 8601 time with an offset. Returns milliseconds since the epoch, or NaN for any other text. */
export const parseTime = (text: string): number => {
  if (!iso8601.test(text)) return Number.NaN
  // `Date.parse` accepts February 30 as March 1 or 2.
  const dayExists = new Date(text.slice(0, 10)).getUTCDate() === Number(text.slice(8, 10))
  return dayExists ? Date.parse(text) : Number.NaN
}

/** Returns true if a Timestamp can represent an instant (milliseconds since the epoch). */
export const isRepresentable = (millis: number): boolean => millis >= earliest && millis <= latest

/** Parses a time with `parseTime` and converts it to a Timestamp. Throws a RangeError if `parseTime` returns NaN. */
export const normalizeTime = (text: string): Timestamp => toTimestamp(parseTime(text))

/** Converts milliseconds since the epoch to a Timestamp, clamped to the years 0001 to 9999. */
export const toTimestamp = (millis: number): Timestamp =>
  new Date(Math.min(Math.max(millis, earliest), latest)).toISOString() as Timestamp
