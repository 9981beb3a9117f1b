import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { Query } from "../driver/Query.ts"

/**
 * Maximum number of statements in flight for one workspace. The smallest pool of the primary can run more statements at
 * the same time. Slow statements of one workspace therefore never use a whole pool.
 */
const maxStatements = 3

interface Permits {
  readonly semaphore: Semaphore.Semaphore
  /** The number of statements that run or wait. */
  statements: number
}

/**
 * Returns the function that makes the query of a workspace. A statement waits while `maxStatements` other statements of
 * its workspace are in flight.
 */
export const makeQueryOf = (query: Query): ((workspace: WorkspaceId) => Query) => {
  const permitsOf = new Map<WorkspaceId, Permits>()
  return (workspace) => (statement) =>
    Effect.suspend(() => {
      const permits = permitsOf.get(workspace) ?? {
        semaphore: Semaphore.makeUnsafe(maxStatements),
        statements: 0
      }
      permits.statements++
      permitsOf.set(workspace, permits)
      return Effect.ensuring(
        permits.semaphore.withPermit(query(statement)),
        Effect.sync(() => {
          permits.statements--
          if (permits.statements === 0) permitsOf.delete(workspace)
        })
      )
    })
}
