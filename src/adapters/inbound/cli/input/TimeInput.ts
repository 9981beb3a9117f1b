import { isRepresentable, parseTime } from "../../../../domain/Timestamp.ts"

/** The units of durations, in milliseconds. A day has 24 hours. */
const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Parses one of these texts, and returns `undefined` for any other text:
 *
 * - an ISO 8601 time with an offset
 * - a date, which means the start of that day in UTC
 * - a duration from now, written as at most 7 digits and a unit, such as `30m`, `12h` or `90d`
 * - `now`
 *
 * A time or a date must be in the years 0001 to 9999. The returned function converts the current time to the time that
 * the text means. Both times are in milliseconds since the epoch.
 */
export const parseTimeInput = (text: string): ((now: number) => number) | undefined => {
  if (text === "now") return (now) => now
  const [, count, unit = ""] = /^(\d{1,7})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return (now) => now + Number(count) * (units[unit] ?? Number.NaN)
  const instant = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00Z` : text)
  return isRepresentable(instant) ? () => instant : undefined
}
