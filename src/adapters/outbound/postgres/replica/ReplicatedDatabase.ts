import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { WorkspaceRevisions } from "../../../../application/freshness/WorkspaceRevisions.ts"
import { type DatabaseServer, makeDatabaseServer } from "../connection/DatabaseServer.ts"
import { makePoolConfig } from "../driver/PoolConfig.ts"
import { Database } from "../Database.ts"
import * as PostgresChangeFeed from "../feed/PostgresChangeFeed.ts"
import { Fence } from "./Fence.ts"
import { ReadRouter } from "./ReadRouter.ts"
import { Replica, type ReplicaInUse } from "./Replica.ts"
import type { ReplicaBudget } from "../connection/ConnectionBudget.ts"
import { makeReadMetrics } from "./ReplicaMetrics.ts"

/** The replicas of a database, and the connections to them. */
export interface ReplicationOptions {
  /** The URL of each replica, and its name in logs and metrics. */
  readonly replicas: ReadonlyArray<{ readonly name: string; readonly url: Redacted.Redacted }>
  readonly budget: ReplicaBudget
  /** The URL of the connection that listens; if undefined, the URL of the database. */
  readonly feedUrl: Redacted.Redacted | undefined
}

/**
 * Returns the function that chooses the replica for a read. A process uses the same replica as long as the replica is
 * connected, because another replica may show another state, and a move to it needs a proof (`Fence`). The first choice
 * is random, so that the processes are spread over the replicas.
 */
const makeReplicaChoice = (replicas: ReadonlyArray<Replica>): (() => ReplicaInUse | undefined) => {
  let active = replicas[Math.floor(Math.random() * replicas.length)]
  return () => {
    if (active?.isConnected === false) active = replicas.find(({ isConnected }) => isConnected) ?? active
    return active?.usable
  }
}

/**
 * Provides the change feed of a database, and a `Database` that runs reads on replicas where `ReadRouter` allows it.
 */
export const layer = ({
  replicas,
  budget,
  feedUrl
}: ReplicationOptions): Layer.Layer<Database | ChangeFeed, never, Database | DatabaseServer | PgClient> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const database = yield* Database
      const revisions = new WorkspaceRevisions()
      const fence = new Fence(database.queryKeys, revisions)
      const feed = Context.get(
        yield* Layer.build(PostgresChangeFeed.makeLayer(revisions, feedUrl, fence.onNotification)),
        ChangeFeed
      )
      const standbys = replicas.map(({ name, url }) => {
        const config = makePoolConfig(makeDatabaseServer(url).config)
        return new Replica({ name, config }, budget, fence)
      })
      const router = new ReadRouter({
        revisions,
        fence,
        primary: database,
        findReplica: makeReplicaChoice(standbys),
        isFeedUp: () => feed.revision() !== undefined,
        metrics: makeReadMetrics()
      })
      yield* Effect.forEach(standbys, ({ run }) => Effect.forkScoped(run), { discard: true })
      yield* Effect.forkScoped(fence.run)
      const replicated = Database.of({
        ...database,
        queryPrompts: (statement) => router.run("queryPrompts", statement),
        queryKeys: (statement) => router.run("queryKeys", statement)
      })
      return Context.add(Context.make(Database, replicated), ChangeFeed, feed)
    })
  )
