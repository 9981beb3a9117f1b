import * as Effect from "effect/Effect"

/** The maximum duration of an HTTP request, of an MCP call and of an in-process read, in milliseconds. */
export const requestDeadlineMs = 5_000

/**
 * Runs an effect. If a timer of `arm` calls `end` before the effect ends, interrupts the effect, and fails with the
 * failure that `end` got. Does not wait for an uninterruptible effect. Every request and every query runs through this
 * function, because it costs a sixth of `Effect.timeoutOrElse`.
 *
 * @param arm starts timers that call `end`, and returns the function that stops the timers
 */
export const runUntil = <A, E, Timeout>(
  effect: Effect.Effect<A, E>,
  arm: (end: (failure: Effect.Effect<never, Timeout>) => void) => () => void
): Effect.Effect<A, E | Timeout> =>
  Effect.withFiber((fiber) =>
    Effect.callback<A, E | Timeout>((resume) => {
      const running = Effect.runForkWith(fiber.context)(effect)
      let hasTimedOut = false
      const disarm = arm((failure) => {
        hasTimedOut = true
        running.interruptUnsafe()
        resume(failure)
      })
      running.addObserver((exit) => {
        disarm()
        if (!hasTimedOut) resume(exit)
      })
      return Effect.sync(() => {
        disarm()
        running.interruptUnsafe()
      })
    })
  )

/** Runs an effect for at most `milliseconds`, then interrupts it and fails with `error`. */
export const withDeadline =
  <Timeout>(milliseconds: number, error: Timeout) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | Timeout> =>
    runUntil(effect, (end) => {
      const timer = setTimeout(() => end(Effect.fail(error)), milliseconds)
      return () => clearTimeout(timer)
    })
