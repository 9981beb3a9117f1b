import * as Effect from "effect/Effect"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceRevisions } from "../../../../application/freshness/WorkspaceRevisions.ts"
import type { Row, Statement } from "../driver/Query.ts"
import type { Fence } from "./Fence.ts"
import type { ReplicaInUse, ReplicaSession } from "./Replica.ts"
import type { ReadMetrics } from "./ReplicaMetrics.ts"

type Rows = ReadonlyArray<Row>

/** The outcome of a read on a replica. `show` returns the rows, and records that the caller gets them. */
type ReplicaOutcome =
  | { readonly _tag: "Found" | "Incomplete"; readonly rows: Rows; readonly show: () => Rows }
  | { readonly _tag: "Fenced" | "Failed" | "None" }

export interface ReadRouterOptions {
  readonly revisions: Pick<WorkspaceRevisions, "revision">
  readonly fence: Pick<Fence, "at" | "isPassedBy" | "await">
  readonly primary: ReplicaSession
  readonly findReplica: () => ReplicaInUse | undefined
  readonly isFeedUp: () => boolean
  readonly metrics: ReadMetrics
}

/** Returns true if `rows` contain a row that is missing in `others`. Both are results of the same statement. */
const hasFurtherRow = (rows: Rows, others: Rows): boolean => {
  const ordinals = new Set(others.map(({ ordinal }) => ordinal))
  return rows.some(({ ordinal }) => !ordinals.has(ordinal))
}

/**
 * Chooses the server for each read. These rules ensure that a read never returns a state from before a change that the
 * feed has already reported, or a state that is older than the result of an earlier read of this process. A server
 * *shows* a change when a read on this server returns the change to a caller.
 *
 * 1. A replica runs a read only if it has passed the fence: it has already replayed the last reported change. The
 *    result is used only if no other change is reported before the read ends.
 * 2. A read on a replica returns only after the feed has reported every change that other servers showed before the
 *    read was sent. Rule 1 then covers these changes.
 * 3. The primary runs a read only after every change that replicas have shown has become visible on the primary, because
 *    a replica may be ahead of the primary.
 * 4. If a replica does not find everything, the primary runs the statement too, because the missing rows may be so
 *    recent that the feed has not reported them. If the primary finds no further row, the rows of the replica are the
 *    result, and only the replica has shown something.
 * 5. While the change feed is down, changes may go unreported, so each read goes to the primary first. A replica runs
 *    the read only if the primary does not respond and rules 1 and 2 allow the read.
 */
export class ReadRouter {
  readonly #options: ReadRouterOptions
  /** The session that the last read of a replica used. */
  #session: ReplicaSession | undefined
  /** When a replica last showed something, by the monotonic clock. */
  #shownByReplicaAt = Number.NEGATIVE_INFINITY
  /** When a server other than the server of `#session` last showed something. */
  #shownElsewhereAt = Number.NEGATIVE_INFINITY

  constructor(options: ReadRouterOptions) {
    this.#options = options
  }

  /** Runs a statement on a server that the rules allow. A statement without `expectedRows` runs on the primary. */
  run(pool: keyof ReplicaSession, statement: Statement): Effect.Effect<Rows, Unavailable> {
    const { primary, isFeedUp, metrics } = this.#options
    const readPrimary = this.#readPrimary(pool, statement)
    if (statement.expectedRows === undefined) return readPrimary
    const countedRead = Effect.tap(readPrimary, () => Effect.sync(metrics.countPrimary))
    const readReplica = this.#readReplica(pool, statement)

    /** Runs a read on the primary. If the primary does not respond, runs the statement on the replica. */
    const orReplica = (read: Effect.Effect<Rows, Unavailable>) =>
      Effect.catchTag(read, "Unavailable", (error) =>
        Effect.flatMap(readReplica, (outcome) =>
          // While the change feed is up, the primary may have rows that the replica did not find.
          outcome._tag === "Found" || (outcome._tag === "Incomplete" && !isFeedUp())
            ? Effect.sync(outcome.show)
            : Effect.fail(error)
        )
      )

    const readReplicaFirst = Effect.flatMap(readReplica, (outcome) => {
      if (outcome._tag === "Found") return Effect.sync(outcome.show)
      if (outcome._tag === "Fenced") metrics.countFenced()
      else if (outcome._tag !== "None") metrics.countRepeated()
      return orReplica(
        outcome._tag !== "Incomplete"
          ? countedRead
          : Effect.flatMap(primary[pool](statement), (latest) =>
              hasFurtherRow(latest, outcome.rows) ? countedRead : Effect.sync(outcome.show)
            )
      )
    })
    return Effect.suspend(() => (isFeedUp() ? readReplicaFirst : orReplica(countedRead)))
  }

  /** Runs a read on the primary, subject to rule 3. */
  #readPrimary(pool: keyof ReplicaSession, statement: Statement): Effect.Effect<Rows, Unavailable> {
    const { fence, primary } = this.#options
    return Effect.suspend(() => fence.await("visible", this.#shownByReplicaAt)).pipe(
      Effect.andThen(primary[pool](statement)),
      Effect.tap(() =>
        Effect.sync(() => {
          this.#shownElsewhereAt = performance.now()
        })
      )
    )
  }

  /** Runs a read on the current replica, subject to rules 1 and 2. */
  #readReplica(pool: keyof ReplicaSession, statement: Statement): Effect.Effect<ReplicaOutcome> {
    const { findReplica, revisions, fence } = this.#options
    return Effect.suspend((): Effect.Effect<ReplicaOutcome> => {
      const replica = findReplica()
      if (replica === undefined) return Effect.succeed({ _tag: "None" })
      if (!fence.isPassedBy(replica.state)) return Effect.succeed({ _tag: "Fenced" })
      const { session } = replica
      this.#use(session)
      const revision = revisions.revision()
      const shownElsewhereAt = this.#shownElsewhereAt
      const prove = shownElsewhereAt < fence.at ? Effect.void : fence.await("reported", shownElsewhereAt)
      return Effect.matchCauseEffect(session[pool](statement), {
        // Catches every cause: when a replica is lost, its pools interrupt their statements.
        onFailure: () => Effect.succeed<ReplicaOutcome>({ _tag: "Failed" }),
        onSuccess: (rows) =>
          Effect.match(prove, {
            onFailure: (): ReplicaOutcome => ({ _tag: "Fenced" }),
            onSuccess: (): ReplicaOutcome =>
              revisions.revision() === revision
                ? {
                    _tag: rows.length >= (statement.expectedRows ?? 0) ? "Found" : "Incomplete",
                    rows,
                    show: () => this.#show(session, rows)
                  }
                : { _tag: "Fenced" }
          })
      })
    })
  }

  /**
   * Records which session runs the next read. If the session changes, everything that replicas have shown so far counts
   * as shown by another server.
   */
  #use(session: ReplicaSession): void {
    if (session === this.#session) return
    this.#session = session
    this.#shownElsewhereAt = Math.max(this.#shownElsewhereAt, this.#shownByReplicaAt)
  }

  #show(session: ReplicaSession, rows: Rows): Rows {
    this.#shownByReplicaAt = performance.now()
    if (session !== this.#session) this.#shownElsewhereAt = this.#shownByReplicaAt
    this.#options.metrics.countReplica()
    return rows
  }
}
