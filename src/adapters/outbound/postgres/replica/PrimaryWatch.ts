import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { makeStateLog } from "../../../../application/StateLog.ts"
import type { WorkspaceRevisions } from "../../../../application/WorkspaceRevisions.ts"
import type { Instant } from "../../../../domain/Instant.ts"
import type { ChangeObserver } from "../ChangeObserver.ts"
import { describeSqlError, isConnectionLost } from "../connection/SqlErrors.ts"
import type { Fence } from "./FenceQueue.ts"
import { decodePrimary, type Lineage, selectPrimary } from "./ServerState.ts"
import { WakeableSleep } from "./WakeableSleep.ts"

/** How long reads of the primary share a fence, in milliseconds. */
const readFenceDelayMs = 20
/** How long the watch waits after its query failed, in milliseconds. */
const retryDelayMs = 1_000
/** How long the watch waits without a reason to ask; a heartbeat gives one each second. */
const idleMs = 60_000

/**
 * Learns fences from the primary, over the connection on which the change feed sends heartbeats, so that both come from
 * the same server. At most one query is in flight; the next one covers all changes that were reported meanwhile.
 */
export class PrimaryWatch implements ChangeObserver {
  readonly #revisions: WorkspaceRevisions
  readonly #sleep = new WakeableSleep()
  readonly #stateLog = makeStateLog({
    failed: "The position of the primary is unknown; replicas are not used"
  })
  #onFence: (fence: Fence, lineage: Lineage) => void = () => {}
  #confirmedAt = Number.NEGATIVE_INFINITY
  #askedRevision = -1
  #isDue = false
  #readTimer: NodeJS.Timeout | undefined

  constructor(revisions: WorkspaceRevisions) {
    this.#revisions = revisions
  }

  /**
   * When the last heartbeat that arrived was sent, by the monotonic clock. PostgreSQL commits transactions that notify
   * one after the other and delivers their notifications in this order, each once its transaction is visible. So
   * what was read from any server before this time is visible on the primary now, and every change in it has been
   * reported.
   */
  get confirmedAt(): number {
    return this.#confirmedAt
  }

  /** Sets what is called with each fence. */
  setListener(onFence: (fence: Fence, lineage: Lineage) => void): void {
    this.#onFence = onFence
  }

  readonly onChange = (): void => this.#sleep.wake()

  readonly onHeartbeat = ({ monotonic }: Instant): void => {
    this.#confirmedAt = Math.max(this.#confirmedAt, monotonic)
    this.#requestNow()
  }

  /** Asks for a fence that covers the reads of the primary until now, soon. */
  requestFence(): void {
    this.#readTimer ??= setTimeout(() => {
      this.#readTimer = undefined
      this.#requestNow()
    }, readFenceDelayMs).unref()
  }

  readonly follow = (connection: PgConnection): Effect.Effect<never, SqlError> =>
    Effect.suspend(() => {
      this.#askedRevision = -1
      return Effect.forever(
        Effect.suspend(() =>
          this.#isDue || this.#revisions.revision() > this.#askedRevision
            ? this.#askOrWait(connection)
            : this.#sleep.sleep(idleMs)
        )
      )
    })

  #requestNow(): void {
    this.#isDue = true
    this.#sleep.wake()
  }

  #askOrWait(connection: PgConnection): Effect.Effect<void, SqlError> {
    return Effect.matchEffect(this.#ask(connection), {
      onSuccess: () => this.#stateLog.up,
      onFailure: (error) =>
        isConnectionLost(error)
          ? Effect.fail(error)
          : Effect.andThen(this.#stateLog.down(describeSqlError(error)), Effect.sleep(retryDelayMs))
    })
  }

  #ask(connection: PgConnection): Effect.Effect<void, SqlError> {
    return Effect.suspend(() => {
      const revision = this.#revisions.revision()
      const at = performance.now()
      this.#isDue = false
      this.#askedRevision = revision
      return Effect.map(connection.query(selectPrimary, [], false), ({ rows }) => {
        const primary = decodePrimary(rows)
        if (primary !== undefined) this.#onFence({ revision, at, position: primary.position }, primary)
      })
    })
  }
}
