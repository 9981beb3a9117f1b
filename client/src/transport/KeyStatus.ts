import { getStatus } from "../Errors.ts"

/**
 * Remembers whether the service rejected the API key (401 or 403). A rejected key must get neither a bundled text nor a
 * fallback, even if the service is down later. A request that starts after the rejection and succeeds ends the
 * rejection.
 */
export class KeyStatus {
  #isRejected = false
  #rejections = 0

  /** True since the last 401 or 403, until a later request succeeds. */
  get isRejected(): boolean {
    return this.#isRejected
  }

  get rejections(): number {
    return this.#rejections
  }

  /** Runs a request, and records whether its outcome rejects or accepts the key. */
  async observe<A>(request: () => Promise<A>): Promise<A> {
    const rejections = this.#rejections
    try {
      const result = await request()
      if (rejections === this.#rejections) this.#isRejected = false
      return result
    } catch (error) {
      if (isKeyRejection(error)) {
        this.#isRejected = true
        this.#rejections++
      }
      throw error
    }
  }
}

/** Returns true for a 401 or 403, whether the service or a proxy sent it. */
export const isKeyRejection = (error: unknown): boolean => {
  const status = getStatus(error)
  return status === 401 || status === 403
}
