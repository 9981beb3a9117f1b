import { toApiError } from "../Errors.ts"
import { now, type Signal, sleep } from "./Limits.ts"

/** The pause after a 429. The clients that share the pause send no request until the pause ends. */
export class RateLimitPause {
  #until = 0
  /** Id of the request that got the 429. */
  #requestId: string | undefined

  /**
   * Waits until the pause ends; other calls may extend the pause. Rejects immediately if the pause does not end before
   * the deadline.
   */
  async wait(signal: Signal, deadline: number): Promise<void> {
    for (;;) {
      const delay = this.#until - now()
      if (delay <= 0) return
      if (this.#until >= deadline) {
        throw toApiError({
          status: 429,
          code: "RATE_LIMITED",
          message: "Rate limit exceeded; no request was sent",
          requestId: this.#requestId,
          retryAfter: Math.ceil(delay / 1000)
        })
      }
      await sleep(delay, signal)
    }
  }

  /** Pauses all calls for a delay in milliseconds. Never shortens a pause. */
  extend(delay: number, requestId: string | undefined): void {
    const until = now() + delay
    if (until <= this.#until) return
    this.#until = until
    this.#requestId = requestId
  }
}
