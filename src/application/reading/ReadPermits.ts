import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/** The number of reads of a workspace that run at once after a large read. Each read may hold about 8 MiB until it is encoded. */
const maxLargeReads = 4
/** The number of reads of a workspace that run at once if they are small. */
const maxSmallReads = 32
/** The number of workspaces whose permits are kept. */
const maxWorkspaces = 10_000

class Permits {
  readonly #semaphore = Semaphore.makeUnsafe(maxLargeReads)
  /** How many reads run at once. */
  #limit = maxLargeReads
  /** How many large steps the reads of the workspace have had. */
  #largeSteps = 0

  /** Lets only `maxLargeReads` run at once from now on. */
  readonly restrict: Effect.Effect<void> = Effect.suspend(() => {
    this.#largeSteps++
    return this.#resize(maxLargeReads)
  })

  /** Runs a read once there is a permit. After a small read, one more may run at once. */
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

// All services of a process share its memory, so this is a value of the module. The workspace that was read last is
// the last entry.
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
 * Runs a read of a workspace, from the query to the encoded response, once few enough other reads of the workspace
 * run. This bounds the memory that the workspace takes, and the time for which it occupies the database and the event
 * loop. The size of a read is known only after the read has run, so a workspace with small reads gets further permits
 * one by one, and only `maxLargeReads` again after `restrictReads`.
 */
export const withReadPermit = <A, E>(
  workspace: WorkspaceId,
  read: Effect.Effect<A, E>
): Effect.Effect<A, E> => Effect.suspend(() => findPermits(workspace).run(read))

/** Lets only a few reads of a workspace run at once from now on, because one of them is large. */
export const restrictReads = (workspace: WorkspaceId): Effect.Effect<void> =>
  Effect.suspend(() => findPermits(workspace).restrict)
