import * as Effect from "effect/Effect"
import { Unavailable } from "../../../application/ports/Unavailable.ts"

/** The number of reads that run at once: the database can send one value while this process handles another. */
const maxRunningReads = 2

/** The largest number of reads that wait for a permit. */
const maxWaiting = 1_000

/** The longest time that a read waits for a permit, in milliseconds. */
const waitTimeoutMs = 5_000

/** Gives a permit to a waiting read. */
type GrantPermit = () => void

/** Limits how many reads of large rows run at once. A free permit goes to one read of each workspace in turn. */
export class LargeReadQueue {
  #free = maxRunningReads
  #waiting = 0
  /** The waiting reads by workspace. The workspace whose turn is next comes first. */
  readonly #reads = new Map<string, Set<GrantPermit>>()

  /**
   * Runs a read of large rows of a workspace once a permit is free. Fails with `Unavailable` if too many reads wait
   * or the wait exceeds the timeout.
   */
  read<A, E, R>(workspace: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(this.#wait(workspace)), () =>
        Effect.onExit(restore(effect), () => Effect.sync(() => this.#release()))
      )
    )
  }

  #wait(workspace: string): Effect.Effect<void, Unavailable> {
    return Effect.callback((resume) => {
      if (this.#free > 0) {
        this.#free--
        return resume(Effect.void)
      }
      if (this.#waiting >= maxWaiting) return resume(Effect.fail(Unavailable))
      const dequeue = () => {
        clearTimeout(timer)
        const reads = this.#reads.get(workspace)
        if (reads?.delete(grantPermit) !== true) return
        this.#waiting--
        if (reads.size === 0) this.#reads.delete(workspace)
      }
      const grantPermit = () => {
        dequeue()
        resume(Effect.void)
      }
      const timer = setTimeout(() => {
        dequeue()
        resume(Effect.fail(Unavailable))
      }, waitTimeoutMs)
      const reads = this.#reads.get(workspace) ?? new Set()
      this.#reads.set(workspace, reads.add(grantPermit))
      this.#waiting++
      return Effect.sync(dequeue)
    })
  }

  #release(): void {
    const [next] = this.#reads
    if (next === undefined) {
      this.#free++
      return
    }
    const [workspace, reads] = next
    const [read] = reads
    this.#reads.delete(workspace)
    this.#reads.set(workspace, reads)
    read?.()
  }
}

/**
 * The permits of this thread. A module-level value and not a service: all services in a thread share one event
 * loop, so they must share the permits, however many services an embedder starts.
 */
export const largeReadQueue = new LargeReadQueue()
