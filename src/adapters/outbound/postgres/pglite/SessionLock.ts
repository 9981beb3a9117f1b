import { performance } from "node:perf_hooks"

interface Waiter {
  readonly resolve: (acquired: boolean) => void
  readonly timer: NodeJS.Timeout
}

/** A lock that waiters acquire in the order of their requests, each with a deadline. */
export class SessionLock {
  readonly #waiters: Array<Waiter> = []
  #isBusy = false

  /** Waits until the lock is free or `deadline` (of `performance.now()`) has passed; resolves with whether it was acquired. */
  acquire(deadline: number): Promise<boolean> {
    if (!this.#isBusy) {
      this.#isBusy = true
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const giveUp = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        resolve(false)
      }
      const waiter = { resolve, timer: setTimeout(giveUp, Math.max(0, deadline - performance.now())) }
      this.#waiters.push(waiter)
    })
  }

  /** Passes the lock to the next waiter, or frees it. */
  release(): void {
    const next = this.#waiters.shift()
    this.#isBusy = next !== undefined
    clearTimeout(next?.timer)
    next?.resolve(true)
  }
}
