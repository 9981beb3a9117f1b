import * as Layer from "effect/Layer"
import { ChangeFeed, type WorkspaceRevisions } from "../../../../src/application/ports/ChangeFeed.ts"

/** A feed of changes that a test makes, up or down as it says. */
export const switchedFeed = (changes: WorkspaceRevisions) => {
  const state = { isUp: true }
  const layer = Layer.succeed(ChangeFeed, {
    revision: () => (state.isUp ? changes.revision() : undefined),
    revisionOf: (workspace) => (state.isUp ? changes.revisionOf(workspace) : undefined)
  })
  return Object.assign(state, { layer })
}
