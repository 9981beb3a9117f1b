import * as Context from "effect/Context"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/**
 * The readings of two clocks of one process at the same moment, in milliseconds. The monotonic clock can stop while the
 * machine is suspended. The wall clock can be set to a different time.
 */
export interface ClockReading {
  readonly monotonic: number
  readonly wall: number
}

/** The state of a change feed at its last contact with the database. */
export interface LastContact {
  /** The moment of the last contact. The feed has reported every change that was committed before this moment. */
  readonly at: ClockReading
  /** Returns the revision of the last reported change of a workspace. */
  readonly revisionOf: (workspace: WorkspaceId) => number
  /** Returns true if the process has paused since the last contact. The feed may have missed changes in the pause. */
  readonly hasPausedSince: () => boolean
}

/** Receives the workspace whose revision has increased, or `undefined` if several workspaces may have changed. */
export type ChangeListener = (workspace: WorkspaceId | undefined) => void

/**
 * Port: reports changes of the database as revisions, so that caches can tell whether a value is still current
 * (`RevisionedCache`). A revision is a number that grows with each change the feed receives. While the feed is down,
 * changes may go unnoticed, and `revision` and `revisionOf` return `undefined`.
 */
export class ChangeFeed extends Context.Service<
  ChangeFeed,
  {
    /** Returns the revision of the last change of any workspace. */
    readonly revision: () => number | undefined
    /** Returns the revision of the last change of a workspace. */
    readonly revisionOf: (workspace: WorkspaceId) => number | undefined
    /**
     * Returns the last contact with the database, even while the feed is down, or `undefined` before the first contact.
     * When the feed regains contact, it treats every workspace as changed, so no earlier revision is current.
     */
    readonly lastContact: () => LastContact | undefined
    /** Adds a listener that is called after each change of a revision, and with `undefined` when the feed goes down. */
    readonly onChange: (listener: ChangeListener) => void
  }
>()("prompt-retrieval/ChangeFeed") {}
