import * as Effect from "effect/Effect"

/**
 * Runs an effect in one fiber until it ends, or until `arm` ends it with a failure. Every request and every query takes
 * this path: with Node's timers it costs a sixth of `Effect.timeoutOrElse`. It does not wait for an uninterruptible
 * effect.
 *
 * @param arm starts timers that call `end`, and returns the function that stops them
 */
export const runUntil = <A, E, Timeout>(
  effect: Effect.Effect<A, E>,
  arm: (end: (failure: Effect.Effect<never, Timeout>) => void) => () => void
): Effect.Effect<A, E | Timeout> =>
  Effect.withFiber((fiber) =>
    Effect.callback<A, E | Timeout>((resume) => {
      const running = Effect.runForkWith(fiber.context)(effect)
      const disarm = arm((failure) => {
        resume(failure)
        running.interruptUnsafe()
      })
      running.addObserver((exit) => {
        disarm()
        resume(exit)
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
