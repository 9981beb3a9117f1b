import * as Layer from "effect/Layer"
import {
  ChangeFeed,
  type ChangeListener,
  type LastContact
} from "../../../src/application/ports/ChangeFeed.ts"
import { readClocks, WorkspaceRevisions } from "../../../src/application/cache/FeedState.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"

/** Creates a change feed for tests. `isUp` sets whether the feed is up; `changes` holds its revisions. */
export const switchedFeed = (changes = new WorkspaceRevisions()) => {
  const feed = {
    changes,
    isUp: true,
    revision: () => (feed.isUp ? changes.revision() : undefined),
    revisionOf: (workspace: WorkspaceId) => (feed.isUp ? changes.revisionOf(workspace) : undefined),
    lastContact: (): LastContact | undefined => ({
      at: readClocks(),
      hasPausedSince: () => false,
      revisionOf: (workspace: WorkspaceId) => changes.revisionOf(workspace)
    }),
    onChange: (listener: ChangeListener) => changes.onChange(listener)
  }
  return Object.assign(feed, { layer: Layer.succeed(ChangeFeed, feed) })
}
