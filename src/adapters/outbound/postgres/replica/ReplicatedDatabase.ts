import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceRevisions } from "../../../../application/WorkspaceRevisions.ts"
import { makeColumnTypes } from "../connection/ColumnTypes.ts"
import { makeDatabaseServer } from "../connection/DatabaseServer.ts"
import { makePoolConfig } from "../connection/PoolConfig.ts"
import { Database } from "../Database.ts"
import { CommitBarrier } from "./CommitBarrier.ts"
import { PrimaryAvailability } from "./PrimaryAvailability.ts"
import type { PrimaryWatch } from "./PrimaryWatch.ts"
import { ReadRouter } from "./ReadRouter.ts"
import type { ReplicaBudget } from "./ReplicaBudget.ts"
import { makeReadMetrics } from "./ReplicaMetrics.ts"
import { ReplicaSet } from "./ReplicaSet.ts"

/** Runs reads that only the primary can run, in order with the reads of replicas. */
export class PrimaryReads extends Context.Service<
  PrimaryReads,
  {
    /** Runs a read of a workspace, or of a key's hash, that uses the primary. */
    readonly read: <A, E>(id: string, read: Effect.Effect<A, E>) => Effect.Effect<A, E | Unavailable>
  }
>()("prompt-retrieval/PrimaryReads") {}

/** The address of a replica, and how logs and metrics name it. */
export interface ReplicaAddress {
  readonly name: string
  readonly url: Redacted.Redacted
}

/** What a replicated database consists of. */
export interface ReplicationOptions {
  readonly replicas: ReadonlyArray<ReplicaAddress>
  readonly budget: ReplicaBudget
  readonly revisions: WorkspaceRevisions
  /** Follows the change feed of the primary. */
  readonly watch: PrimaryWatch
}

/** Runs the reads of a database on its replicas where `ReadRouter` allows. */
export const layer = ({
  replicas,
  budget,
  revisions,
  watch
}: ReplicationOptions): Layer.Layer<Database | PrimaryReads, never, Database | ChangeFeed> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const database = yield* Database
      const feed = yield* ChangeFeed
      const isFeedUp = () => feed.revision() !== undefined
      const metrics = makeReadMetrics()
      const set = new ReplicaSet(
        replicas.map(({ name, url }) => ({
          name,
          config: {
            ...makePoolConfig(makeDatabaseServer(url).config),
            types: makeColumnTypes()
          }
        })),
        budget
      )
      const availability = new PrimaryAvailability(database.queryKeys, isFeedUp, metrics.setPrimaryDown)
      const router = new ReadRouter({
        revisions,
        watch,
        barrier: new CommitBarrier(database.queryKeys),
        primary: database,
        availability,
        findReplica: () => set.find(availability.isDown),
        isFeedUp,
        metrics
      })
      watch.setListener((fence, primary) => set.addFence(fence, primary))
      yield* set.run
      yield* Effect.forkScoped(availability.run)
      const replicated = Database.of({
        ...database,
        queryPrompts: (statement) => router.run("queryPrompts", statement),
        queryKeys: (statement) => router.run("queryKeys", statement)
      })
      return Context.make(Database, replicated).pipe(
        Context.add(PrimaryReads, { read: (id, read) => router.readOnPrimary(id, read) })
      )
    })
  )
