import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ChangeListener, ClockReading, LastContact } from "../ports/ChangeFeed.ts"

export const readClocks = (): ClockReading => ({ monotonic: performance.now(), wall: Date.now() })

/**
 * Returns the milliseconds from `start` to `end`. Uses the clock with the larger difference, so that neither a
 * suspension nor setting the wall clock back makes the result smaller. The result is never negative.
 */
export const elapsedBetween = (start: ClockReading, end: ClockReading): number =>
  Math.max(0, end.monotonic - start.monotonic, end.wall - start.wall)

/** When this many workspaces have their own revision, the next change marks all workspaces as changed. */
const maxWorkspaces = 10_000

/** The revisions of all workspaces, for implementations of `ChangeFeed`. */
export class WorkspaceRevisions {
  #revision = 0
  #globalRevision = 0
  readonly #byWorkspace = new Map<string, number>()
  readonly #listeners: Array<ChangeListener> = []

  revision(): number {
    return this.#revision
  }

  revisionOf(workspace: string): number {
    return this.#byWorkspace.get(workspace) ?? this.#globalRevision
  }

  invalidate(workspace: string): void {
    if (this.#byWorkspace.size >= maxWorkspaces) this.invalidateAll()
    this.#byWorkspace.set(workspace, ++this.#revision)
    this.notify(workspace as WorkspaceId)
  }

  /** Records that all workspaces may have changed. */
  invalidateAll(): void {
    this.#byWorkspace.clear()
    this.#globalRevision = ++this.#revision
    this.notify(undefined)
  }

  /** Adds a listener. Each change of a revision calls it with the workspace, or with `undefined` for all workspaces. */
  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener)
  }

  /** Calls the listeners. */
  notify(workspace: WorkspaceId | undefined): void {
    for (const listener of this.#listeners) listener(workspace)
  }
}

/** A longer time between two calls of `observePause`, in milliseconds, counts as a pause of the process. */
const minPauseMs = 500

/**
 * The state of a change feed, for implementations of `ChangeFeed`. The feed is up for `ttlMs` milliseconds after its
 * last contact. The feed is down if the process has paused since then (SIGSTOP, a suspended machine, a blocked event
 * loop), because a paused process reads no notifications.
 */
export class FeedState {
  readonly revisions = new WorkspaceRevisions()
  readonly #ttlMs: number
  #upUntil: ClockReading | undefined
  #lastContact: LastContact | undefined
  #runningAt = readClocks()
  #pauseEnd = Number.NEGATIVE_INFINITY

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs
  }

  readonly revision = () => (this.isUp() ? this.revisions.revision() : undefined)
  readonly revisionOf = (workspace: WorkspaceId) =>
    this.isUp() ? this.revisions.revisionOf(workspace) : undefined
  readonly lastContact = () => this.#lastContact
  readonly onChange = (listener: ChangeListener) => this.revisions.onChange(listener)

  isUp(): boolean {
    return this.isAlive() && this.#lastContact?.hasPausedSince() === false
  }

  /** Returns true if the last contact is not older than `ttlMs` by either clock. */
  isAlive(): boolean {
    const until = this.#upUntil
    return until !== undefined && performance.now() < until.monotonic && Date.now() < until.wall
  }

  /**
   * Records that the feed has reported every change that was committed before `at`. If contact was lost, marks all
   * workspaces as changed.
   */
  recordContact(at: ClockReading): void {
    if (!this.isAlive()) this.revisions.invalidateAll()
    this.#upUntil = { monotonic: at.monotonic + this.#ttlMs, wall: at.wall + this.#ttlMs }
    this.#lastContact = {
      at,
      revisionOf: (workspace) => this.revisions.revisionOf(workspace),
      hasPausedSince: () => at.monotonic < this.observePause()
    }
  }

  markDown(): void {
    this.#upUntil = undefined
    this.revisions.notify(undefined)
  }

  /**
   * Detects whether the process has paused since the last call. Must be called at intervals shorter than `minPauseMs`.
   * Returns the end of the last pause, by the monotonic clock.
   */
  observePause(): number {
    const now = readClocks()
    if (elapsedBetween(this.#runningAt, now) > minPauseMs) this.#pauseEnd = now.monotonic
    this.#runningAt = now
    return this.#pauseEnd
  }
}
