import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceRevisions } from "../../../../application/freshness/WorkspaceRevisions.ts"
import { withDeadline } from "../../../../application/support/Deadline.ts"
import type { Query } from "../driver/Query.ts"
import { channel, heartbeatPrefix } from "../feed/NotifyChannel.ts"
import { decodePrimary, type ServerState, sendMarker } from "./ServerState.ts"

/** How long a marker may take, and how long a read waits for a proof, in milliseconds (see `Fence`). */
const timeoutMs = 1_000
/** How long the fence waits after a failed marker before it sends another marker, in milliseconds. */
const defaultRetryDelayMs = 200

/** What a marker proves about all changes that reads on any server returned before the marker was sent. */
export type Proof =
  /** The changes are visible on the primary. */
  | "visible"
  /** The change feed has reported the changes. */
  | "reported"

interface Waiter {
  readonly proof: Proof
  readonly at: number
  readonly resume: (result: Effect.Effect<void, Unavailable>) => void
}

/**
 * Keeps the position in the write-ahead log (WAL) that a standby must have replayed before it runs reads of this
 * process. Also gives the proofs that reads need when they move to another server. The comment of `ReadRouter` lists
 * the rules that need the position and the proofs.
 *
 * The position and the proofs come from *markers*. A marker is a statement on the primary that sends a notification and
 * returns the primary's position. PostgreSQL commits transactions with notifications one after another. It delivers
 * their notifications in the same order, each after its transaction is visible. Once a marker is committed, every
 * change that a read on any server returned before the marker was sent is therefore visible on the primary. Once the
 * notification of the marker has arrived, the change feed has reported all these changes.
 *
 * At most one marker is in flight. The next marker serves all reads that began to wait meanwhile.
 */
export class Fence {
  readonly #query: Query
  readonly #revisions: Pick<WorkspaceRevisions, "revision">
  readonly #retryDelayMs: number
  readonly #markerPrefix = `${heartbeatPrefix}${crypto.randomUUID()} `
  readonly #isDue = Latch.makeUnsafe(false)
  readonly #waiters = new Set<Waiter>()
  readonly #provenAt = { visible: Number.NEGATIVE_INFINITY, reported: Number.NEGATIVE_INFINITY }
  #revision = -1
  #at = Number.NEGATIVE_INFINITY
  #primary: ServerState | undefined
  /** True after a marker has failed, until another marker succeeds. */
  #isFailing = false

  /** @param query runs statements on the primary */
  constructor(
    query: Query,
    revisions: Pick<WorkspaceRevisions, "revision">,
    retryDelayMs = defaultRetryDelayMs
  ) {
    this.#query = query
    this.#revisions = revisions
    this.#retryDelayMs = retryDelayMs
  }

  /** The state of the primary that standbys must have reached; `undefined` until a marker has succeeded. */
  get primary(): ServerState | undefined {
    return this.#primary
  }

  /**
   * When `primary` was queried, by the monotonic clock. The position of `primary` is after every change that was
   * visible at that time.
   */
  get at(): number {
    return this.#at
  }

  /** Returns true if a standby has replayed every change that the change feed has reported. */
  isPassedBy({ position, lineage }: ServerState): boolean {
    return !this.#isOutdated && lineage === this.#primary?.lineage && position >= this.#primary.position
  }

  /** Receives each notification of the change feed, after the feed has recorded it. */
  readonly onNotification = (payload: string): void => {
    if (payload.startsWith(this.#markerPrefix))
      this.#prove("reported", Number(payload.slice(this.#markerPrefix.length)))
    else if (this.#isOutdated) this.#isDue.openUnsafe()
  }

  /**
   * Succeeds once a marker has given the proof for all changes that reads returned until `at`. Fails if this takes
   * longer than `timeoutMs`. Fails immediately if the last marker failed.
   */
  await(proof: Proof, at: number): Effect.Effect<void, Unavailable> {
    const wait = Effect.callback<void, Unavailable>((resume) => {
      const waiter = { proof, at, resume }
      this.#waiters.add(waiter)
      this.#isDue.openUnsafe()
      return Effect.sync(() => this.#waiters.delete(waiter))
    })
    return Effect.suspend(() => {
      if (at < this.#provenAt[proof]) return Effect.void
      return this.#isFailing ? Effect.fail(Unavailable) : failAfterTimeout(wait)
    })
  }

  get #isOutdated(): boolean {
    return this.#revisions.revision() > this.#revision
  }

  readonly #sendMarker: Effect.Effect<void, Unavailable> = Effect.suspend(() => {
    this.#isDue.closeUnsafe()
    const revision = this.#revisions.revision()
    const at = performance.now()
    const statement = { text: sendMarker, params: [channel, this.#markerPrefix + at] }
    return Effect.map(this.#query(statement), (rows) => {
      this.#isFailing = false
      this.#prove("visible", at)
      const primary = decodePrimary(rows)
      // Keep the position if nothing has changed: after each new position, standbys run no reads until they have
      // replayed it.
      if (revision === this.#revision && primary.lineage === this.#primary?.lineage) return
      this.#revision = revision
      this.#at = at
      this.#primary = primary
      if (this.#isOutdated) this.#isDue.openUnsafe()
    })
  })

  readonly #onFailure: Effect.Effect<void> = Effect.suspend(() => {
    this.#isFailing = true
    for (const { resume } of this.#waiters) resume(Effect.fail(Unavailable))
    return Effect.delay(
      Effect.sync(() => this.#isDue.openUnsafe()),
      this.#retryDelayMs
    )
  })

  /** Sends a marker whenever one is needed, until the fiber is interrupted. */
  readonly run: Effect.Effect<never> = this.#isDue.await.pipe(
    Effect.andThen(failAfterTimeout(this.#sendMarker)),
    // Catches every cause: on a server that is not a primary, the statement fails with a defect.
    Effect.catchCause(() => this.#onFailure),
    Effect.forever
  )

  #prove(proof: Proof, at: number): void {
    this.#provenAt[proof] = Math.max(this.#provenAt[proof], at)
    for (const waiter of this.#waiters) {
      if (waiter.proof !== proof) continue
      if (waiter.at < at) waiter.resume(Effect.void)
      else this.#isDue.openUnsafe()
    }
  }
}

const failAfterTimeout = withDeadline(timeoutMs, Unavailable)
