import * as Effect from "effect/Effect"
import { Unavailable } from "./ports/Unavailable.ts"

/** Values longer than this, in bytes or UTF-16 code units, are large: work on them is queued and done in slices. */
export const largeBytes = 256 * 1024

/** The number of slots for large values: the database can send one value while this process encodes another. */
const slots = 2

/** The largest number of reads that wait for a slot. */
const maxWaitingReads = 1_000

/** The longest time that a read waits for a slot, in milliseconds. */
const waitTimeoutMs = 5_000

/** Gives a slot to a waiting effect. */
type Start = () => void

/**
 * Limits the work on large values to a few slots. A free slot goes to an encoding first, then to one read of each
 * workspace in turn, so that no workspace can delay the reads of another for long.
 */
export class LargeWork {
  #free = slots
  #waitingReads = 0
  readonly #encodings = new Set<Start>()
  /** The waiting reads by workspace. The workspace whose turn is next comes first. */
  readonly #reads = new Map<string, Set<Start>>()

  /**
   * Runs a read of a large value of a workspace once a slot is free. Fails with `Unavailable` if too many reads wait or
   * the wait exceeds the timeout.
   */
  read<A, E, R>(workspace: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> {
    return this.#run(this.#waitToRead(workspace), effect)
  }

  /** Runs the encoding of a large value that was read. Takes precedence over reads, so that values do not pile up. */
  encode<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.#run(this.#waitToEncode, effect)
  }

  #run<A, E, R, E2>(
    wait: Effect.Effect<void, E2>,
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | E2, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(wait), () =>
        Effect.onExit(restore(effect), () => Effect.sync(() => this.#release()))
      )
    )
  }

  readonly #waitToEncode = Effect.callback<void>((resume) => {
    if (this.#tryTake()) return resume(Effect.void)
    const start = () => resume(Effect.void)
    this.#encodings.add(start)
    return Effect.sync(() => void this.#encodings.delete(start))
  })

  #waitToRead(workspace: string): Effect.Effect<void, Unavailable> {
    return Effect.callback((resume) => {
      if (this.#tryTake()) return resume(Effect.void)
      if (this.#waitingReads >= maxWaitingReads) return resume(Effect.fail(Unavailable))
      const dequeue = () => {
        clearTimeout(timer)
        const waiting = this.#reads.get(workspace)
        if (waiting?.delete(start) !== true) return
        this.#waitingReads--
        if (waiting.size === 0) this.#reads.delete(workspace)
      }
      const start = () => {
        dequeue()
        resume(Effect.void)
      }
      const timer = setTimeout(() => {
        dequeue()
        resume(Effect.fail(Unavailable))
      }, waitTimeoutMs)
      const waiting = this.#reads.get(workspace) ?? new Set()
      this.#reads.set(workspace, waiting.add(start))
      this.#waitingReads++
      return Effect.sync(dequeue)
    })
  }

  #tryTake(): boolean {
    if (this.#free === 0) return false
    this.#free--
    return true
  }

  #release(): void {
    const [encoding] = this.#encodings
    if (encoding !== undefined) {
      this.#encodings.delete(encoding)
      encoding()
      return
    }
    const [next] = this.#reads
    if (next === undefined) {
      this.#free++
      return
    }
    const [workspace, waiting] = next
    const [read] = waiting
    this.#reads.delete(workspace)
    this.#reads.set(workspace, waiting)
    read?.()
  }
}

/**
 * The slots of this process. A module-level value and not a service: all services in a process share one event loop, so
 * they must share the slots, however many services an embedder starts.
 */
export const largeWork = new LargeWork()

/** Waits until the event loop has handled all other due events. */
export const nextTurn: Effect.Effect<void> = Effect.callback((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
