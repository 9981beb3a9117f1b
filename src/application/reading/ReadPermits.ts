import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/** The number of reads of a workspace that run at once. Each may hold about 8 MiB until it is encoded. */
const maxReads = 8

interface Permits {
  readonly semaphore: Semaphore.Semaphore
  /** The reads that run or wait. */
  reads: number
}

// All services of a process share its memory, so this is a value of the module.
const permitsOf = new Map<WorkspaceId, Permits>()

/**
 * Runs a read of a workspace, from the query to the encoded response, once fewer than `maxReads` others of the same
 * workspace run. That bounds the memory that a workspace takes, and the time that it keeps the database and the event
 * loop from others.
 */
export const withReadPermit = <A, E>(
  workspace: WorkspaceId,
  read: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const permits = permitsOf.get(workspace) ?? { semaphore: Semaphore.makeUnsafe(maxReads), reads: 0 }
    permits.reads++
    permitsOf.set(workspace, permits)
    return Effect.ensuring(
      permits.semaphore.withPermit(read),
      Effect.sync(() => {
        permits.reads--
        if (permits.reads === 0) permitsOf.delete(workspace)
      })
    )
  })
