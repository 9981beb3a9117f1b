import * as Layer from "effect/Layer"
import { ChangeFeed, WorkspaceRevisions } from "../../src/application/ports/ChangeFeed.ts"
import type { WorkspaceId } from "../../src/domain/Prompt.ts"

/** Makes a change feed that a test takes up and down by `isUp`, over the revisions that the test makes. */
export const switchedFeed = (changes = new WorkspaceRevisions()) => {
  const feed = {
    changes,
    isUp: true,
    revision: () => (feed.isUp ? changes.revision() : undefined),
    revisionOf: (workspace: WorkspaceId) => (feed.isUp ? changes.revisionOf(workspace) : undefined)
  }
  return Object.assign(feed, { layer: Layer.succeed(ChangeFeed, feed) })
}
