import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Logs conditions that last. Each message is logged immediately, and then every minute while it is still reported. */
export interface RepeatingLog {
  /**
   * Reports that a condition holds. Does not log its message if the same message, or `maxMessages` different messages,
   * were logged in the last minute.
   */
  readonly report: (message: string) => Effect.Effect<void>
  /** Reports that no condition holds any more: the next report of any message is logged immediately. */
  readonly clear: Effect.Effect<void>
}

/** The minimum time between two logs of the same message unless `clear` runs in between, in nanoseconds. */
const repeatIntervalNanos = 60_000_000_000n

/** Maximum number of different messages that are logged per minute. */
const maxMessages = 10

/** Returns a `RepeatingLog` that writes each message with `log`. */
export const makeRepeatingLog = (log: (message: string) => Effect.Effect<void>): RepeatingLog => {
  /** When each message was logged, in nanoseconds of the monotonic clock. */
  const loggedAt = new Map<string, bigint>()
  return {
    report: (message) =>
      Effect.flatMap(Clock.Clock, (clock) => {
        const now = clock.monotonicTimeNanosUnsafe()
        for (const [logged, at] of loggedAt) if (now - at >= repeatIntervalNanos) loggedAt.delete(logged)
        if (loggedAt.has(message) || loggedAt.size >= maxMessages) return Effect.void
        loggedAt.set(message, now)
        return log(message)
      }),
    clear: Effect.sync(() => loggedAt.clear())
  }
}
