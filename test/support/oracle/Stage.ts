import * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { freshCluster } from "../database/cluster.ts"
import { type PoolMode, runPgBouncer } from "../database/pgbouncer.ts"
import { freshName } from "../postgres.ts"
import { type Instance, startInstance } from "./Instance.ts"

/** Two instances of the service on one database behind PgBouncer, on which histories run one after another. */
export interface Stage {
  /** Connects to the database directly. */
  readonly sql: PgClient.PgClient
  readonly instances: ReadonlyArray<Instance>
  readonly restartPooler: () => Promise<void>
}

export interface StageOptions {
  readonly poolMode: PoolMode
  /** How long known responses are served without the database, such as "0 seconds". */
  readonly outageMaxAge: string
}

const connect = (url: string) =>
  Effect.map(Layer.build(PgClient.layer({ url: Redacted.make(url) })), Context.get(PgClient.PgClient)).pipe(
    Effect.orDie
  )

/** Starts a PostgreSQL server for several stages, and returns its URL. Closing the scope stops and removes it. */
export const startServer: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function* () {
  const cluster = yield* freshCluster
  yield* Effect.promise(() => cluster.start(["max_connections=300"]))
  return cluster.url
})

/** Starts a stage with a new database on a server. */
export const startStage = (
  serverUrl: string,
  { poolMode, outageMaxAge }: StageOptions
): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.gen(function* () {
    const database = freshName()
    yield* Effect.scoped(
      Effect.flatMap(connect(serverUrl), (sql) => Effect.orDie(sql.unsafe(`create database ${database}`)))
    )
    const feedUrl = new URL(`/${database}`, serverUrl).href
    const pooler = yield* runPgBouncer(feedUrl, poolMode)
    const instances = yield* Effect.forEach(
      ["instance 0", "instance 1"],
      (name) =>
        startInstance({
          name,
          databaseUrl: pooler.url,
          feedUrl,
          env: { OUTAGE_MAX_AGE: outageMaxAge }
        }),
      { concurrency: 2 }
    )
    return { sql: yield* connect(feedUrl), instances, restartPooler: pooler.restart }
  })
