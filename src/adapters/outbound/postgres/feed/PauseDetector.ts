import * as Effect from "effect/Effect"
import { readInstant } from "../../../../application/support/Clocks.ts"
import { elapsedBetween } from "../../../../domain/time/Instant.ts"

const intervalMs = 100
/** A longer time between two runs of the timer is a pause, in milliseconds. */
const pauseMs = 500

/**
 * Detects pauses of this process: it was suspended (SIGSTOP, a paused machine), or its event loop was blocked. During
 * a pause, nothing that arrives is read.
 */
export class PauseDetector {
  #aliveAt = readInstant()
  #lastEnd = Number.NEGATIVE_INFINITY

  /** Makes a detector that runs until the scope closes. It does not keep the process alive. */
  static readonly make = Effect.acquireRelease(
    Effect.sync(() => {
      const detector = new PauseDetector()
      const timer = setInterval(() => detector.lastEnd(), intervalMs).unref()
      return { detector, timer }
    }),
    ({ timer }) => Effect.sync(() => clearInterval(timer))
  ).pipe(Effect.map(({ detector }) => detector))

  /** Returns when the last pause ended, by the monotonic clock. Also detects a pause that has just ended. */
  lastEnd(): number {
    const now = readInstant()
    if (elapsedBetween(this.#aliveAt, now) > pauseMs) this.#lastEnd = now.monotonic
    this.#aliveAt = now
    return this.#lastEnd
  }
}
