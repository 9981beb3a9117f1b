import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { RunningRead } from "./Turns.ts"

/** The number of large reads of a workspace that run at once. Each may hold about 8 MiB until it is encoded. */
const maxLargeReads = 4
/** The number of small reads of a workspace that run at once. */
const maxSmallReads = 32

class Permits {
  /** How many reads run at once. */
  limit = maxLargeReads
  readonly semaphore = Semaphore.makeUnsafe(maxLargeReads)
  /** The reads that run or wait. */
  reads = 0

  /** Lets one more read run at once after each small one, and only `maxLargeReads` after a large one. */
  adapt(wasLarge: boolean): Effect.Effect<void> {
    const limit = wasLarge ? maxLargeReads : Math.min(this.limit + 1, maxSmallReads)
    if (limit === this.limit) return Effect.void
    this.limit = limit
    return this.semaphore.resize(limit)
  }
}

// All services of a process share its memory, so this is a value of the module.
const permitsOf = new Map<WorkspaceId, Permits>()

/**
 * Runs a read of a workspace, from the query to the encoded response, once few enough others of the same workspace
 * run. That bounds the memory that a workspace takes, and the time that it keeps the database and the event loop from
 * others. The size of a read is known only when it has run, so a workspace with small reads gets more permits one by
 * one.
 */
export const withReadPermit = <A, E>(
  workspace: WorkspaceId,
  read: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const permits = permitsOf.get(workspace) ?? new Permits()
    permits.reads++
    permitsOf.set(workspace, permits)
    const running = { isLarge: false }
    const counted = Effect.tap(Effect.provideService(read, RunningRead, running), () =>
      permits.adapt(running.isLarge)
    )
    return Effect.ensuring(
      permits.semaphore.withPermit(counted),
      Effect.sync(() => {
        permits.reads--
        if (permits.reads === 0) permitsOf.delete(workspace)
      })
    )
  })
