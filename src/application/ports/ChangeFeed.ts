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

/**
 * The shortest pause, in milliseconds. If more time passes between two observations of a process, the process has
 * paused, and possibly missed changes.
 */
export const minPauseMs = 500

/** Receives the workspace whose revision has increased, or `undefined` if all workspaces count as changed. */
export type ChangeListener = (workspace: WorkspaceId | undefined) => void

/**
 * Port: reports changes to the database as revisions, so that caches can tell whether a value is still current
 * (`RevisionedCache`). A revision is a number that grows with each change that the feed receives. While the feed is
 * down, the feed can miss changes. The state of the feed is in fields instead of methods, because every read uses the
 * state (`checkIsUp`, `revisionOf`).
 */
export class ChangeFeed extends Context.Service<
  ChangeFeed,
  {
    /** The revision of the last change of any workspace. */
    readonly latestRevision: number
    /** The revision of the last change after which all workspaces count as changed. */
    readonly globalRevision: number
    /** The revisions of the workspaces that have changed since `globalRevision`. */
    readonly revisions: ReadonlyMap<string, number>
    /**
     * The lease: the time until which the feed is up if the process does not pause. Each contact with the database
     * renews the lease. `undefined` if the feed is known to be down.
     */
    readonly lease: ClockReading | undefined
    /**
     * The last moment at which the process was seen to run. A timer of the feed updates this moment. `checkIsUp` also
     * updates this moment, because the timers of a busy process are late.
     */
    readonly running: { monotonic: number; wall: number }
    /**
     * The moment of the last contact with the database, even while the feed is down, or `undefined` before the first
     * contact. The feed has reported every change that was committed before this moment. When the feed regains contact,
     * it treats every workspace as changed, so no earlier revision is current.
     */
    readonly lastContact: ClockReading | undefined
    /** Returns true if the process has paused since the last contact. The feed possibly missed changes in the pause. */
    readonly checkHasPaused: () => boolean
    /** Adds a listener that is called after each change of a revision, and with `undefined` when the feed goes down. */
    readonly onChange: (listener: ChangeListener) => void
  }
>()("prompt-retrieval/application/ports/ChangeFeed") {}
