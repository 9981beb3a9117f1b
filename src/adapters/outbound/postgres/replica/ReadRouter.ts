import * as Effect from "effect/Effect"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceRevisions } from "../../../../application/WorkspaceRevisions.ts"
import type { Query, ReadScope, Row, Statement } from "../connection/Query.ts"
import type { CommitBarrier } from "./CommitBarrier.ts"
import type { Fence } from "./FenceQueue.ts"
import type { PrimaryAvailability } from "./PrimaryAvailability.ts"
import type { PrimaryWatch } from "./PrimaryWatch.ts"
import { ReadHistory } from "./ReadHistory.ts"
import type { ReplicaSession } from "./Replica.ts"
import type { ReadMetrics } from "./ReplicaMetrics.ts"
import type { ReplicaInUse } from "./ReplicaSet.ts"

type Rows = ReadonlyArray<Row>

/** The pools of the primary that replicas have, too. */
export type PoolName = keyof Pick<ReplicaSession, "queryPrompts" | "queryKeys">

/** Stands for every workspace in the history of reads. */
const anyId = "*"
/** How often a read of the primary is repeated because it found workspaces that it did not know before. */
const maxPrimaryReads = 3
/** While the change feed is down, how long a read of the primary may take that a replica can run, in milliseconds. */
const primaryTimeoutMs = 1_000

/** The outcome of a read of a replica: its rows, if they count. The rows are shown once `show` has run. */
type ReplicaOutcome =
  | { readonly _tag: "Found" | "Incomplete"; readonly show: () => Rows }
  | { readonly _tag: "Fenced" | "Failed" | "None" }

/** What the router depends on. */
export interface ReadRouterOptions {
  readonly revisions: Pick<WorkspaceRevisions, "revision" | "revisionOf">
  readonly watch: Pick<PrimaryWatch, "confirmedAt" | "requestFence">
  readonly barrier: Pick<CommitBarrier, "provenAt" | "await">
  readonly primary: Readonly<Record<PoolName, Query>>
  readonly availability: Pick<PrimaryAvailability, "isDown" | "reportDown">
  readonly findReplica: () => ReplicaInUse | undefined
  readonly isFeedUp: () => boolean
  readonly metrics: ReadMetrics
}

/**
 * Chooses the server of each read. A read never returns a state that is older than a change that was reported before, or
 * older than what an earlier read of the same workspace returned:
 *
 * 1. A replica runs a read only if it has passed the fence of the workspace's last reported change. The
 *    process must have seen this before it sends the read.
 * 2. A replica runs a read only if it has everything that earlier reads of other servers showed: it has passed a fence
 *    that is later than these reads, or a heartbeat that was sent after them has arrived, so that rule 1 covers them.
 * 3. The primary runs a read only if what replicas showed of the workspace is visible there: a heartbeat that was sent
 *    afterwards has arrived, or `CommitBarrier` proves it.
 * 4. What a replica does not find is read from the primary: it may be so new that its change has not been reported.
 * 5. While the change feed is down, changes may go unreported: the primary runs all reads. Only while the primary does
 *    not respond, replicas run those that rules 1 and 2 allow.
 */
export class ReadRouter {
  readonly #options: ReadRouterOptions
  readonly #history = new ReadHistory()

  constructor(options: ReadRouterOptions) {
    this.#options = options
  }

  /** Runs a statement on the server that the rules allow; one without a scope on the primary. */
  run(pool: PoolName, statement: Statement): Effect.Effect<Rows, Unavailable> {
    const { scope } = statement
    if (scope === undefined) return this.#options.primary[pool](statement)
    return Effect.suspend(() => {
      const { isFeedUp, availability } = this.#options
      return isFeedUp() || availability.isDown
        ? this.#readReplicaFirst(pool, statement, scope)
        : this.#readPrimaryFirst(pool, statement, scope)
    })
  }

  /** Runs a read of the primary, in whatever way, under rule 3. */
  readOnPrimary<A, E>(id: string, read: Effect.Effect<A, E>): Effect.Effect<A, E | Unavailable> {
    return this.#waitForReplicaReads([id]).pipe(
      Effect.andThen(read),
      Effect.ensuring(Effect.sync(() => this.#recordPrimary([id])))
    )
  }

  #readReplicaFirst(
    pool: PoolName,
    statement: Statement,
    scope: ReadScope
  ): Effect.Effect<Rows, Unavailable> {
    return Effect.flatMap(this.#readReplica(pool, statement, scope), (outcome) => {
      if (outcome._tag === "Found") return Effect.succeed(outcome.show())
      const { metrics } = this.#options
      if (outcome._tag === "Fenced") metrics.countFenced()
      else if (outcome._tag !== "None") metrics.countRepeated()
      return Effect.catchTag(this.#readPrimary(pool, statement, scope), "Unavailable", (error) =>
        outcome._tag === "Incomplete"
          ? this.#showAfter(error, outcome)
          : this.#readReplicaAfter(error, pool, statement, scope)
      )
    })
  }

  #readPrimaryFirst(
    pool: PoolName,
    statement: Statement,
    scope: ReadScope
  ): Effect.Effect<Rows, Unavailable> {
    const read = this.#readPrimary(pool, statement, scope)
    const bounded = this.#mayReadReplica(scope)
      ? Effect.timeoutOrElse(read, { duration: primaryTimeoutMs, orElse: () => Effect.fail(Unavailable) })
      : read
    return Effect.catchTag(bounded, "Unavailable", (error) =>
      this.#readReplicaAfter(error, pool, statement, scope)
    )
  }

  /** Reads a replica after the primary has failed. */
  #readReplicaAfter(
    error: Unavailable,
    pool: PoolName,
    statement: Statement,
    scope: ReadScope
  ): Effect.Effect<Rows, Unavailable> {
    this.#reportIfFeedDown()
    return Effect.flatMap(this.#readReplica(pool, statement, scope), (outcome) =>
      this.#showAfter(error, outcome)
    )
  }

  /**
   * Shows the outcome of a replica after the primary has failed. While the change feed is up, the primary is not down, and
   * may have what the replica did not find.
   */
  #showAfter(error: Unavailable, outcome: ReplicaOutcome): Effect.Effect<Rows, Unavailable> {
    const isDown = this.#reportIfFeedDown()
    return outcome._tag === "Found" || (outcome._tag === "Incomplete" && isDown)
      ? Effect.succeed(outcome.show())
      : Effect.fail(error)
  }

  /** Reports that the primary is down if the change feed is down, too, and returns whether it is. */
  #reportIfFeedDown(): boolean {
    const { isFeedUp, availability } = this.#options
    if (isFeedUp()) return false
    availability.reportDown()
    return true
  }

  #mayReadReplica({ ids }: ReadScope): boolean {
    const replica = this.#options.findReplica()
    return replica !== undefined && this.#hasPassed(ids, replica.fences.passed, replica.session.epoch)
  }

  /** Returns true if a replica that has passed a fence has everything of these ids. */
  #hasPassed(ids: ReadonlyArray<string>, passed: Fence, epoch: number): boolean {
    const { revisions, watch } = this.#options
    const coveredUntil = Math.max(passed.at, watch.confirmedAt)
    return ids.every(
      (id) =>
        revisions.revisionOf(id) <= passed.revision && this.#history.lastElsewhere(id, epoch) < coveredUntil
    )
  }

  /** Returns true if a replica that has passed a fence has everything of all workspaces. */
  #hasPassedAll(passed: Fence, epoch: number): boolean {
    return this.#options.revisions.revision() <= passed.revision && this.#hasPassed([anyId], passed, epoch)
  }

  #readReplica(pool: PoolName, statement: Statement, scope: ReadScope): Effect.Effect<ReplicaOutcome> {
    return Effect.suspend((): Effect.Effect<ReplicaOutcome> => {
      const replica = this.#options.findReplica()
      if (replica === undefined) return Effect.succeed({ _tag: "None" })
      const { session } = replica
      const { passed } = replica.fences
      const { epoch } = session
      if (!this.#hasPassed(scope.ids, passed, epoch)) return Effect.succeed({ _tag: "Fenced" })
      // Every cause: the pools of a replica that is lost interrupt their statements.
      return Effect.matchCause(session[pool](statement), {
        onFailure: () => ({ _tag: "Failed" }),
        onSuccess: (rows) => {
          const found = scope.findWorkspaces?.(rows) ?? []
          const workspaces = found.filter((id) => id !== undefined)
          const isComplete = rows.length >= scope.rowCount && workspaces.length === found.length
          const isPassed = this.#hasPassed(workspaces, passed, epoch)
          // What was not found may belong to any workspace.
          if (
            !isPassed ||
            (!isComplete && scope.findWorkspaces !== undefined && !this.#hasPassedAll(passed, epoch))
          )
            return { _tag: "Fenced" }
          const show = () => {
            this.#recordReplica([...scope.ids, ...workspaces], epoch)
            return rows
          }
          return { _tag: isComplete ? "Found" : "Incomplete", show }
        }
      })
    })
  }

  /**
   * Reads the primary. Repeats the read if its rows belong to workspaces that a replica may have shown in a later state;
   * from then on, these workspaces are known before the read.
   */
  #readPrimary(pool: PoolName, statement: Statement, scope: ReadScope): Effect.Effect<Rows, Unavailable> {
    const { primary, metrics } = this.#options
    const send = (ids: ReadonlyArray<string>, attemptsLeft: number): Effect.Effect<Rows, Unavailable> =>
      Effect.suspend(() => {
        // A later proof says nothing about the snapshot of this read.
        const visibleUntil = this.#visibleUntil
        return Effect.flatMap(primary[pool](statement), (rows) => {
          const found = (scope.findWorkspaces?.(rows) ?? []).filter((id) => id !== undefined)
          const all = [...ids, ...found.filter((id) => !ids.includes(id))]
          if (all.length > ids.length && this.#findLastOnReplica(all) >= visibleUntil)
            return attemptsLeft > 1 ? read(all, attemptsLeft - 1) : Effect.fail(Unavailable)
          this.#recordPrimary(all)
          metrics.countPrimary()
          return Effect.succeed(rows)
        })
      })
    const read = (ids: ReadonlyArray<string>, attemptsLeft: number): Effect.Effect<Rows, Unavailable> =>
      Effect.andThen(this.#waitForReplicaReads(ids), send(ids, attemptsLeft))
    return read(scope.ids, maxPrimaryReads)
  }

  /** What replicas showed before this time is visible on the primary. */
  get #visibleUntil(): number {
    return Math.max(this.#options.watch.confirmedAt, this.#options.barrier.provenAt)
  }

  #findLastOnReplica(ids: ReadonlyArray<string>): number {
    return Math.max(...ids.map((id) => this.#history.lastOnReplica(id)))
  }

  /** Waits until what replicas have shown of these ids is visible on the primary. */
  #waitForReplicaReads(ids: ReadonlyArray<string>): Effect.Effect<void, Unavailable> {
    return Effect.suspend(() => {
      const last = this.#findLastOnReplica(ids)
      return last < this.#visibleUntil ? Effect.void : this.#options.barrier.await(last)
    })
  }

  #recordReplica(ids: ReadonlyArray<string>, epoch: number): void {
    const now = performance.now()
    for (const id of [...ids, anyId]) this.#history.recordReplica(id, now, epoch)
    this.#history.forgetBefore(this.#options.watch.confirmedAt)
    this.#options.metrics.countReplica()
  }

  #recordPrimary(ids: ReadonlyArray<string>): void {
    const now = performance.now()
    for (const id of [...ids, anyId]) this.#history.recordPrimary(id, now)
    this.#history.forgetBefore(this.#options.watch.confirmedAt)
    this.#options.watch.requestFence()
  }
}
