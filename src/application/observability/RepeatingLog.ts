import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** The minimum time between two logs of the same message, in nanoseconds. */
const repeatIntervalNanos = 60_000_000_000n

/** Maximum number of different messages that are logged per minute. */
const maxMessages = 10

/** Returns a function that logs a message at most once per minute, and at most `maxMessages` messages per minute. */
export const makeRepeatingLog = (
  log: (message: string) => Effect.Effect<void>
): ((message: string) => Effect.Effect<void>) => {
  /** When each message was logged, in nanoseconds of the monotonic clock. */
  const loggedAt = new Map<string, bigint>()
  return (message) =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const now = clock.monotonicTimeNanosUnsafe()
      for (const [logged, at] of loggedAt) if (now - at >= repeatIntervalNanos) loggedAt.delete(logged)
      if (loggedAt.has(message) || loggedAt.size >= maxMessages) return Effect.void
      loggedAt.set(message, now)
      return log(message)
    })
}
