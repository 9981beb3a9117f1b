import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { type ChangeFeed, type ChangeListener, type ClockReading, minPauseMs } from "../ports/ChangeFeed.ts"

export const readClocks = () => ({ monotonic: performance.now(), wall: Date.now() })

/**
 * Returns the milliseconds from `start` to `end`. Uses the clock with the larger difference, so that neither a
 * suspension nor setting the wall clock back makes the result smaller. The result is never negative.
 */
export const elapsedBetween = (start: ClockReading, end: ClockReading): number =>
  Math.max(0, end.monotonic - start.monotonic, end.wall - start.wall)

type Feed = ChangeFeed["Service"]

/** When this many workspaces have their own revision, the next change marks all workspaces as changed. */
const maxWorkspaces = 10_000

/**
 * The state of a change feed, for implementations of `ChangeFeed`. The feed is up for `ttlMs` milliseconds after its
 * last contact. A pause of the process (SIGSTOP, a suspended machine, a blocked event loop) takes the feed down, because
 * a paused process reads no notifications. `checkIsUp` notices a pause immediately; `observePause` keeps the feed down
 * until a contact after the pause.
 */
export class FeedState implements Feed {
  latestRevision = 0
  globalRevision = 0
  readonly revisions = new Map<string, number>()
  lease: ClockReading | undefined
  lastContact: ClockReading | undefined
  readonly running = readClocks()
  readonly #listeners: Array<ChangeListener> = []
  readonly #ttlMs: number
  /** The last contact; undefined once contact is lost. */
  #contact: ClockReading | undefined
  /** The end of the last pause, by the monotonic clock. */
  #pauseEnd = Number.NEGATIVE_INFINITY

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs
  }

  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener)
  }

  #notify(workspace: WorkspaceId | undefined): void {
    for (const listener of this.#listeners) listener(workspace)
  }

  invalidate(workspace: string): void {
    if (this.revisions.size >= maxWorkspaces) this.invalidateAll()
    this.revisions.set(workspace, ++this.latestRevision)
    this.#notify(workspace as WorkspaceId)
  }

  /** Marks all workspaces as changed. */
  invalidateAll(): void {
    this.revisions.clear()
    this.globalRevision = ++this.latestRevision
    this.#notify(undefined)
  }

  /**
   * Records that the feed has reported every change that was committed before `at`. If contact was lost, marks all
   * workspaces as changed.
   */
  recordContact(at: ClockReading): void {
    if (!this.isAlive()) this.invalidateAll()
    this.#contact = at
    this.lastContact = at
    if (at.monotonic < this.#pauseEnd) return
    this.lease = { monotonic: at.monotonic + this.#ttlMs, wall: at.wall + this.#ttlMs }
  }

  /** Returns true if the last contact is not older than `ttlMs` by either clock, even if the process has paused. */
  isAlive(): boolean {
    return this.#contact !== undefined && elapsedBetween(this.#contact, readClocks()) < this.#ttlMs
  }

  markDown(): void {
    this.#contact = undefined
    this.lease = undefined
    this.#notify(undefined)
  }

  /**
   * Detects a pause of the process since the last observation. Must be called at intervals shorter than `minPauseMs`.
   * Returns the current moment.
   */
  observePause(): ClockReading {
    const now = readClocks()
    if (elapsedBetween(this.running, now) > minPauseMs) {
      this.#pauseEnd = now.monotonic
      this.lease = undefined
    }
    Object.assign(this.running, now)
    return now
  }

  checkHasPaused(): boolean {
    this.observePause()
    return this.lastContact !== undefined && this.lastContact.monotonic < this.#pauseEnd
  }
}
