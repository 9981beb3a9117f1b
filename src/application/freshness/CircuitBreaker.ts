import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { isUnavailable, Unavailable } from "../ports/Unavailable.ts"

/** How long the breaker stays open, in milliseconds. */
const openMs = 250
/** The interval of the timer of `whenSlow`, in milliseconds. */
const stepMs = 50
/** The number of intervals before `onSlow` is called for the first time. */
const steps = 5

/**
 * Calls `onSlow` after 250 ms, and every 50 ms from then on, until the returned function is called. The timer counts
 * intervals, not elapsed time: while the process is suspended or blocked, it counts at most one interval. So in most
 * cases, Node reads the results that arrived meanwhile before it calls `onSlow`.
 */
export const whenSlow = (onSlow: () => void): (() => void) => {
  let count = 0
  const timer = setInterval(() => {
    if (++count >= steps) onSlow()
  }, stepMs)
  return () => clearInterval(timer)
}

/** Returns true if a call was interrupted or failed as unavailable. */
const isUnresponsive = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some(
    (reason) => Cause.isInterruptReason(reason) || (Cause.isFailReason(reason) && isUnavailable(reason.error))
  )

/**
 * A circuit breaker. While the breaker is closed, all calls run. A call opens the breaker if it fails as unavailable,
 * is interrupted, or has no result after 250 ms. For the next 250 ms, every new call fails without running. Then the
 * breaker is half-open: one call runs, and its result closes or reopens the breaker. Until then, other calls still fail
 * without running.
 *
 * A call with any other result closes the breaker, even if the breaker opened while the call ran. A failed call does
 * not open the breaker if such a result has closed the breaker since the failed call started.
 */
export class CircuitBreaker {
  #state: "closed" | "open" | "half-open" = "closed"
  #openedAt = 0
  #succeededAt = Number.NEGATIVE_INFINITY

  /**
   * Runs a call if the breaker permits the call; otherwise fails as unavailable. If the caller is interrupted, the call
   * still runs to its end, because its result closes or opens the breaker.
   */
  run<A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E | Unavailable> {
    return Effect.suspend((): Effect.Effect<A, E | Unavailable> => {
      if (!this.#admits()) return Effect.fail(Unavailable)
      const startedAt = performance.now()
      const stop = whenSlow(() => this.#fail(startedAt))
      const observed = Effect.onExit(call, (exit) =>
        Effect.sync(() => {
          stop()
          if (isUnresponsive(exit)) this.#fail(startedAt)
          else this.#succeed()
        })
      )
      return Effect.flatMap(Effect.forkDetach(observed, { startImmediately: true }), Fiber.join)
    })
  }

  #admits(): boolean {
    if (this.#state === "closed") return true
    if (this.#state === "half-open" || performance.now() - this.#openedAt < openMs) return false
    this.#state = "half-open"
    return true
  }

  /**
   * Opens the breaker. Does nothing if the breaker is already open, or if another call has closed the breaker since the
   * failed call started.
   */
  #fail(startedAt: number): void {
    if (this.#state === "open" || this.#succeededAt > startedAt) return
    this.#state = "open"
    this.#openedAt = performance.now()
  }

  #succeed(): void {
    this.#state = "closed"
    this.#succeededAt = performance.now()
  }
}
