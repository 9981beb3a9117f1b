import * as Effect from "effect/Effect"
import { Unavailable } from "./Unavailable.ts"

/** Values longer than this, in bytes or in UTF-16 code units, are large. Work on them takes turns and is sliced. */
export const largeBytes = 256 * 1024

/** How many large values are worked on at once: the database sends one while this process encodes another. */
const slots = 2

/** The most large reads that may wait for a slot, and how long each may wait, in milliseconds. */
const maxWaiting = 1_000
const maxWait = 5_000

type Start = () => void

/** Hands out slots: to encoding first, then to one large read of each workspace in turn. */
export class LargeWork {
  #free = slots
  #waitingReads = 0
  readonly #encodings = new Set<Start>()
  /** The waiting reads by workspace. The workspace whose turn is next comes first. */
  readonly #reads = new Map<string, Set<Start>>()

  /**
   * Runs a read of a large value of a workspace once a slot is free. Fails when too many reads are waiting or the wait
   * is too long.
   */
  read<A, E, R>(workspace: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> {
    return this.#run(this.#waitToRead(workspace), effect)
  }

  /** Runs the encoding of a large value that has been read. Goes before every read, so that values do not pile up. */
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
    if (this.#take()) return resume(Effect.void)
    const start = () => resume(Effect.void)
    this.#encodings.add(start)
    return Effect.sync(() => void this.#encodings.delete(start))
  })

  #waitToRead(workspace: string): Effect.Effect<void, Unavailable> {
    return Effect.callback((resume) => {
      if (this.#take()) return resume(Effect.void)
      if (this.#waitingReads >= maxWaiting) return resume(Effect.fail(Unavailable))
      const leave = () => {
        clearTimeout(late)
        const waiting = this.#reads.get(workspace)
        if (waiting?.delete(start) !== true) return
        this.#waitingReads--
        if (waiting.size === 0) this.#reads.delete(workspace)
      }
      const start = () => {
        leave()
        resume(Effect.void)
      }
      const late = setTimeout(() => {
        leave()
        resume(Effect.fail(Unavailable))
      }, maxWait)
      const waiting = this.#reads.get(workspace) ?? new Set()
      this.#reads.set(workspace, waiting.add(start))
      this.#waitingReads++
      return Effect.sync(leave)
    })
  }

  #take(): boolean {
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
    const [turn] = this.#reads
    if (turn === undefined) {
      this.#free++
      return
    }
    const [workspace, waiting] = turn
    const [read] = waiting
    this.#reads.delete(workspace)
    this.#reads.set(workspace, waiting)
    read!()
  }
}

/** The event loop of this process is one, and so is the work on large values that it can bear. */
export const largeWork = new LargeWork()

/** Lets the event loop handle everything else that is due. */
export const nextTurn: Effect.Effect<void> = Effect.callback((resume) => {
  const turn = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(turn))
})
