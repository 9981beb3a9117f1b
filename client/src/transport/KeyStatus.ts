import { getStatus } from "../Errors.ts"

/**
 * Remembers whether the service, or a proxy, rejected the API key (401 or 403). A rejected key must get neither a
 * bundled text nor a fallback, even if the service is down later. A request that starts after the rejection and
 * succeeds ends the rejection.
 */
export class KeyStatus {
  /** True since the last 401 or 403, until a later request succeeds. */
  isRejected = false
  /** The number of 401s and 403s so far. */
  rejections = 0

  /** Runs a request, and records whether its outcome rejects or accepts the key. */
  async observe<A>(request: () => Promise<A>): Promise<A> {
    const rejections = this.rejections
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
}
