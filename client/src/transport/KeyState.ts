import { RateLimitedError } from "../Errors.ts"
import { getStatus } from "../Outages.ts"
import { now } from "./Limits.ts"

/**
 * The state of the API key according to the responses so far. Clients from `withOptions` with the same key and service
 * share the state.
 */
export class KeyState {
  /**
   * True from a 401 or 403 until a request that started later succeeds. A rejected key gets neither a bundled text nor
   * a fallback, even if the service is down later.
   */
  isRejected = false
  /** The number of 401 and 403 responses so far. */
  rejections = 0
  /** The end of the pause after a 429. */
  #pausedUntil = 0
  /** Id of the last request that got a 429. */
  #requestId: string | undefined

  /** Runs a request, and records whether its outcome rejects or accepts the key. */
  async observe<A>(request: () => Promise<A>): Promise<A> {
    const { rejections } = this
    try {
      const result = await request()
      if (rejections === this.rejections) this.isRejected = false
      return result
    } catch (error) {
      if ([401, 403].includes(getStatus(error)!)) {
        this.isRejected = true
        this.rejections++
      }
      throw error
    }
  }

  /** Starts a pause of `delay` milliseconds after a 429. Never shortens a pause. */
  pause(delay: number, requestId: string | undefined): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, now() + delay)
    this.#requestId = requestId
  }

  /**
   * Returns the milliseconds until the pause ends, or 0 without a pause. Throws if the pause does not end before the
   * deadline of a call.
   */
  getDelay(deadline: number): number {
    const delay = this.#pausedUntil - now()
    if (delay <= 0) return 0
    if (this.#pausedUntil < deadline) return delay
    throw new RateLimitedError({
      status: 429,
      code: "RATE_LIMITED",
      message: "Rate limit exceeded; no request was sent",
      requestId: this.#requestId,
      retryAfter: Math.ceil(delay / 1000)
    })
  }
}
