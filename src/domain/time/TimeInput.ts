import { isRepresentable, parseTime } from "../Timestamp.ts"

/**
 * A time that an operator enters: an instant in milliseconds since the epoch, or a duration from now in milliseconds.
 */
export type TimeInput = { readonly instant: number } | { readonly fromNow: number }

/** The units of durations, in milliseconds. A day has 24 hours. */
const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Parses one of these texts, and returns `undefined` for any other text:
 *
 * - an ISO 8601 time with an offset
 * - a date, which means the start of that day in UTC
 * - a duration from now of at most 7 digits and a unit, such as `30m`, `12h` or `90d`
 * - `now`
 *
 * A time or a date must be in the years 0001 to 9999.
 */
export const parseTimeInput = (text: string): TimeInput | undefined => {
  if (text === "now") return { fromNow: 0 }
  const [, count, unit = ""] = /^(\d{1,7})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return { fromNow: Number(count) * (units[unit] ?? Number.NaN) }
  const instant = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00Z` : text)
  return isRepresentable(instant) ? { instant } : undefined
}

/**
 * Returns the instant of a time in milliseconds since the epoch. A duration is counted from `now`, which is also in
 * milliseconds since the epoch.
 */
export const resolveTime = (time: TimeInput, now: number): number =>
  "instant" in time ? time.instant : now + time.fromNow
