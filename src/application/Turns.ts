import * as Effect from "effect/Effect"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"

// All services of a process share one event loop and its memory, so these are values of the module.

/** How long steps may run in one turn of the event loop before the next one waits for another turn, in milliseconds. */
const turnMs = 10

/** When the first step of this turn started; undefined before it. */
let startedAt: number | undefined
const waiting: Array<() => void> = []

const hasTime = (): boolean => {
  const now = performance.now()
  if (startedAt === undefined) {
    startedAt = now
    setImmediate(startNextTurn)
  }
  return now - startedAt < turnMs
}

const startNextTurn = (): void => {
  startedAt = undefined
  const next = waiting.shift()
  if (next === undefined) return
  hasTime()
  next()
}

/**
 * Continues at once, or in a later turn of the event loop if the current one has lasted too long, so that the steps of
 * many large responses do not add up to a pause. Run it before each step that may take a millisecond or more.
 */
export const takeTurn: Effect.Effect<void> = Effect.suspend(() =>
  waiting.length === 0 && hasTime()
    ? Effect.void
    : Effect.callback<void>((resume) => {
        waiting.push(() => resume(Effect.void))
      })
)

/** The number of reads that may hold what they have read from the database, each at most about 8 MiB. */
const maxReads = 16

/**
 * Limits the memory of reads that are not encoded yet. Reads of one workspace wait for each other, and the next permit
 * goes to another workspace, if one waits.
 */
export const readPermits = PartitionedSemaphore.makeUnsafe<WorkspaceId>({ permits: maxReads })
