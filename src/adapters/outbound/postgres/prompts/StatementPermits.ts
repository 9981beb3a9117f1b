import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { Query } from "../driver/Query.ts"

/**
 * The number of statements of a workspace that are in flight at once: fewer than the smallest pool of the primary runs at
 * once, so that slow statements of one workspace leave connections to the others.
 */
const maxStatements = 3

interface Permits {
  readonly semaphore: Semaphore.Semaphore
  /** The statements that run or wait. */
  statements: number
}

/** Returns the function that makes the query of a workspace. A statement waits until few enough others are in flight. */
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
