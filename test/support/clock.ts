import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Runs an effect for which the current time, in milliseconds since the epoch, never changes. Timers are real. */
export const atTime = (millis: number) =>
  Effect.updateService(
    Clock.Clock,
    (clock): Clock.Clock =>
      Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillisUnsafe: () => millis,
        currentTimeMillis: Effect.succeed(millis)
      })
  )
