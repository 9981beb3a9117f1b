import * as Clock from "effect/Clock"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  isRepresentable,
  parseTimeInput,
  resolveTime,
  type TimeInput,
  type Timestamp,
  toTimestamp
} from "../../../../domain/Timestamp.ts"
import { UsageError } from "../output/CommandError.ts"

/** Makes a flag whose value is a time. `parseTimeInput` describes the forms of a time. */
export const timeFlag = (name: string): Flag.Flag<TimeInput> =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(parseTimeInput(text)),
      () =>
        "a time such as 2027-01-31T12:00Z, a date such as 2027-01-31, or a duration such as 90d, 12h or 30m"
    )
  )

/**
 * Resolves the value of a time flag to a timestamp. A duration counts from the current time.
 *
 * @param earliest `now` accepts the current time, `future` rejects it
 */
export const resolveTimeFlag = Effect.fnUntraced(function* (
  name: string,
  time: TimeInput,
  earliest: "now" | "future"
): Effect.fn.Return<Timestamp, UsageError> {
  const now = yield* Clock.currentTimeMillis
  const instant = resolveTime(time, now)
  if (instant < now || (instant === now && earliest === "future"))
    return yield* new UsageError({ message: `--${name} must be in the future` })
  if (!isRepresentable(instant))
    return yield* new UsageError({ message: `--${name} must be before the year 10000` })
  return toTimestamp(instant)
})
