import * as Layer from "effect/Layer"
import { ChangeFeed, type WorkspaceRevisions } from "../../../../src/application/ports/ChangeFeed.ts"

/** A change feed that a test takes up and down, over the revisions that the test makes. */
export const switchedFeed = (changes: WorkspaceRevisions) => {
  const state = { isUp: true }
  const layer = Layer.succeed(ChangeFeed, {
    revision: () => (state.isUp ? changes.revision() : undefined),
    revisionOf: (workspace) => (state.isUp ? changes.revisionOf(workspace) : undefined)
  })
  return Object.assign(state, { layer })
}
