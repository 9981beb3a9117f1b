import * as Effect from "effect/Effect"
import { elapsedBetween, readInstant } from "../../../../application/Clocks.ts"

const intervalMs = 100
/** Maximum time between two runs of the timer, in milliseconds. A longer time is a pause. */
const pauseMs = 500

/**
 * Detects pauses of this process. The process pauses when it is suspended (SIGSTOP, a paused machine) or when its event
 * loop is blocked. During a pause, the process reads nothing that arrives.
 */
export class PauseDetector {
  #aliveAt = readInstant()
  #lastEnd = Number.NEGATIVE_INFINITY

  /** Makes a detector that runs until the scope closes. The detector does not keep the process alive. */
  static readonly make = Effect.acquireRelease(
    Effect.sync(() => {
      const detector = new PauseDetector()
      const timer = setInterval(() => detector.lastEnd(), intervalMs).unref()
      return { detector, timer }
    }),
    ({ timer }) => Effect.sync(() => clearInterval(timer))
  ).pipe(Effect.map(({ detector }) => detector))

  /**
   * Returns the time at which the last pause ended, by the monotonic clock. Also detects a pause that ended after the
   * last run of the timer.
   */
  lastEnd(): number {
    const now = readInstant()
    if (elapsedBetween(this.#aliveAt, now) > pauseMs) this.#lastEnd = now.monotonic
    this.#aliveAt = now
    return this.#lastEnd
  }
}
