import * as Effect from "effect/Effect"

/**
 * The deadline of an HTTP request that the cache cannot serve, of an MCP call and of an in-process read, in
 * milliseconds.
 */
export const requestDeadlineMs = 5_000

/**
 * Runs an effect. If a timer that `arm` started calls `end(failure)` before the effect completes, interrupts the effect
 * and fails with `failure`, without waiting for the interrupted effect to end. In code that runs for every request, use
 * this function instead of `Effect.timeoutOrElse`, which costs six times as much.
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

/** Runs an effect. If the effect does not complete within `milliseconds`, interrupts it and fails with `error`. */
export const withDeadline =
  <Timeout>(milliseconds: number, error: Timeout) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | Timeout> =>
    runUntil(effect, (end) => {
      const timer = setTimeout(() => end(Effect.fail(error)), milliseconds)
      return () => clearTimeout(timer)
    })
