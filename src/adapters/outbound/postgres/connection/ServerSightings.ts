/** Returns of earlier servers are counted over this time, in milliseconds. */
const windowMs = 600_000
/** Returns within this time of another count as one, in milliseconds. */
const minIntervalMs = 1_000
/** So many returns show that several servers respond. Fewer happen while a failover is in progress. */
const minReturns = 5
/** After this long without a return, only one server responds, in milliseconds. */
const quietMs = 60_000

/**
 * The servers that new connections of one URL lead to, in order. A server's identity ends with its process: after a
 * restart or a failover, the earlier identity returns only on connections that were opened shortly before. If
 * identities keep returning, the URL leads to several servers, as that of a load balancer does.
 */
export class ServerSightings {
  #latest: string | undefined
  readonly #earlier = new Set<string>()
  #returns: ReadonlyArray<number> = []
  #isAlternating = false

  /** Records which server a connection leads to. Returns true if another server was seen after this one before. */
  record(server: string, now: number): boolean {
    const hasReturned = this.#earlier.has(server)
    if (server === this.#latest) return hasReturned
    if (this.#latest !== undefined) this.#earlier.add(this.#latest)
    this.#latest = server
    if (hasReturned && now - (this.#returns.at(-1) ?? Number.NEGATIVE_INFINITY) >= minIntervalMs)
      this.#returns = [...this.#returns.filter((at) => at > now - windowMs), now]
    return hasReturned
  }

  /** Returns true while the connections lead to several servers. */
  isAlternating(now: number): boolean {
    if (this.#isAlternating) {
      if ((this.#returns.at(-1) ?? Number.NEGATIVE_INFINITY) > now - quietMs) return true
      this.#isAlternating = false
      this.#returns = []
      this.#earlier.clear()
      return false
    }
    this.#isAlternating = this.#returns.filter((at) => at > now - windowMs).length >= minReturns
    return this.#isAlternating
  }
}
