/** Maximum number of marks. */
const maxMarks = 10_000

/**
 * Names of what must not be served in an outage, each with when it was marked, by the monotonic clock. No mark is
 * forgotten before `deleteBefore` says so: above the maximum number, every name counts as marked.
 */
export class OutageMarks {
  /** In the order of the times. */
  readonly #markedAt = new Map<string, number>()
  /** When a mark did not fit for the last time. */
  #overflowedAt: number | undefined

  add(name: string, now: number): void {
    this.#markedAt.delete(name)
    if (this.#markedAt.size < maxMarks) this.#markedAt.set(name, now)
    else this.#overflowedAt = now
  }

  /** Returns true if a name may have been marked at a time or later. */
  has(name: string, since = Number.NEGATIVE_INFINITY): boolean {
    const isAfter = (time: number | undefined) => time !== undefined && time >= since
    return isAfter(this.#overflowedAt) || isAfter(this.#markedAt.get(name))
  }

  /** Forgets what was marked before a time. */
  deleteBefore(time: number): void {
    if (this.#overflowedAt !== undefined && this.#overflowedAt < time) this.#overflowedAt = undefined
    for (const [name, markedAt] of this.#markedAt) {
      if (markedAt >= time) return
      this.#markedAt.delete(name)
    }
  }
}
