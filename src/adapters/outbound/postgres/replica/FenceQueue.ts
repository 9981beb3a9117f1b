import type { Position } from "./Position.ts"

/**
 * A point that a standby must have replayed: all changes that were reported as `revision` or before, and all data that
 * was read before `at` (by the monotonic clock, in milliseconds), are in the WAL before `position`.
 */
export interface Fence {
  readonly revision: number
  readonly at: number
  readonly position: Position
}

/** Stands for no fence: every change and every read is after it. */
const noFence: Fence = { revision: -1, at: Number.NEGATIVE_INFINITY, position: -1n }

/** Maximum number of fences that a standby has not passed. */
const maxWaiting = 1_000

/**
 * The fences of one standby, in the order of their positions, of which it has passed some. Its position must have been
 * seen by a statement that was complete before the read that relies on it is sent: the snapshot of a
 * statement is older than the position that the same statement returns.
 */
export class FenceQueue {
  #waiting: Array<Fence> = []
  #passed = noFence
  /** The last position that was seen; `undefined` while it is not known. */
  #position: Position | undefined

  /** The last fence that the standby has passed. */
  get passed(): Fence {
    return this.#passed
  }

  /** The last position that was seen; `undefined` while it is not known. */
  get position(): Position | undefined {
    return this.#position
  }

  /** The first fence that the standby has not passed. */
  get next(): Fence | undefined {
    return this.#waiting[0]
  }

  /** Adds a fence whose revision and time are not before those of the earlier ones. */
  add(fence: Fence): void {
    this.#waiting.push(fence)
    // A fence that is left out is passed with the one after it.
    if (this.#waiting.length > maxWaiting) this.#waiting = this.#waiting.filter((_, index) => index % 2 === 1)
    this.#pass()
  }

  /** Reports a position that the standby has replayed. */
  advance(position: Position): void {
    this.#position = position
    this.#pass()
  }

  /** Reports that the standby may have gone back, as after a restart. The fences stay. */
  losePosition(): void {
    this.#position = undefined
    if (this.#passed !== noFence) this.#waiting.unshift(this.#passed)
    this.#passed = noFence
  }

  /** Removes all fences, because the positions of another primary follow. */
  clear(): void {
    this.#waiting = []
    this.#passed = noFence
    this.#position = undefined
  }

  #pass(): void {
    if (this.#position === undefined) return
    let count = 0
    for (const fence of this.#waiting) {
      if (fence.position > this.#position) break
      this.#passed = fence
      count++
    }
    if (count > 0) this.#waiting = this.#waiting.slice(count)
  }
}
