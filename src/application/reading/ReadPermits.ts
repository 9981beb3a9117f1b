import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/**
 * The number of reads of a workspace that may run at the same time, at first and after a large read. The result of each
 * read may take about 8 MiB of memory until it is encoded.
 */
const maxLargeReads = 4
/** The number of reads of a workspace that may run at the same time after many small reads. */
const maxSmallReads = 32
/** The largest number of workspaces whose permits are kept. */
const maxWorkspaces = 10_000

class Permits {
  readonly #semaphore = Semaphore.makeUnsafe(maxLargeReads)
  #limit = maxLargeReads
  /** The number of calls of `restrict`. */
  #largeSteps = 0

  readonly restrict: Effect.Effect<void> = Effect.suspend(() => {
    this.#largeSteps++
    return this.#resize(maxLargeReads)
  })

  /**
   * Waits for a permit, then runs a read. If the read succeeds and `restrict` was not called meanwhile, raises the
   * limit by one, up to `maxSmallReads`.
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
 * Runs a read of a workspace, from the query to the encoded response. First waits while too many other reads of the
 * workspace run. This bounds the memory that the workspace takes, and the time for which the workspace occupies the
 * database and the event loop.
 *
 * The size of a read is known only after the read has run. A workspace therefore starts with `maxLargeReads` permits.
 * Each small read that succeeds adds one permit, up to `maxSmallReads`, and each large read resets the workspace to
 * `maxLargeReads` permits (`restrictReads`).
 */
export const withReadPermit = <A, E>(
  workspace: WorkspaceId,
  read: Effect.Effect<A, E>
): Effect.Effect<A, E> => Effect.suspend(() => findPermits(workspace).run(read))

/** Resets a workspace to `maxLargeReads` permits, because one of its reads is large. */
export const restrictReads = (workspace: WorkspaceId): Effect.Effect<void> =>
  Effect.suspend(() => findPermits(workspace).restrict)
