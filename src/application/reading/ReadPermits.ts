import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/**
 * The number of reads of a workspace that may run at the same time after a large read. The result of each read may take
 * about 8 MiB of memory until it is encoded.
 */
const maxLargeReads = 4
/** The number of reads of a workspace that may run at the same time while all of them are small. */
const maxSmallReads = 32
/** The largest number of workspaces whose permits are kept. */
const maxWorkspaces = 10_000

class Permits {
  readonly #semaphore = Semaphore.makeUnsafe(maxLargeReads)
  #limit = maxLargeReads
  /** The number of large steps that the workspace's reads have taken. */
  #largeSteps = 0

  /** Resets the limit to `maxLargeReads` reads at the same time. */
  readonly restrict: Effect.Effect<void> = Effect.suspend(() => {
    this.#largeSteps++
    return this.#resize(maxLargeReads)
  })

  /**
   * Waits for a permit, then runs a read. If no read of the workspace takes a large step while this read runs, one more
   * read may then run at the same time.
   */
  run<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.#semaphore.withPermit(
      Effect.suspend(() => {
        const largeSteps = this.#largeSteps
        return Effect.tap(read, () =>
          this.#limit < maxSmallReads && this.#largeSteps === largeSteps
            ? this.#resize(this.#limit + 1)
            : Effect.void
        )
      })
    )
  }

  #resize(limit: number): Effect.Effect<void> {
    this.#limit = limit
    return this.#semaphore.resize(limit)
  }
}

// All services of a process share its memory, so they also share these permits. The workspace that was read last is the
// last entry of the map.
const permitsOf = new Map<WorkspaceId, Permits>()

const findPermits = (workspace: WorkspaceId): Permits => {
  const permits = permitsOf.get(workspace) ?? new Permits()
  permitsOf.delete(workspace)
  permitsOf.set(workspace, permits)
  const [leastRecent] = permitsOf.keys()
  if (permitsOf.size > maxWorkspaces && leastRecent !== undefined) permitsOf.delete(leastRecent)
  return permits
}

/**
 * Runs a read of a workspace, from the query to the encoded response. Waits first while too many other reads of the
 * workspace run. This bounds the memory that the workspace takes, and the time for which the workspace occupies the
 * database and the event loop.
 *
 * The size of a read is known only after the read has run. Each small read therefore adds one permit to its workspace,
 * up to `maxSmallReads`, and `restrictReads` resets the workspace to `maxLargeReads` permits.
 */
export const withReadPermit = <A, E>(
  workspace: WorkspaceId,
  read: Effect.Effect<A, E>
): Effect.Effect<A, E> => Effect.suspend(() => findPermits(workspace).run(read))

/** Resets a workspace to `maxLargeReads` permits, because one of its reads is large. */
export const restrictReads = (workspace: WorkspaceId): Effect.Effect<void> =>
  Effect.suspend(() => findPermits(workspace).restrict)
