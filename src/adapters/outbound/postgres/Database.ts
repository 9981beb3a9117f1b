import * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Readiness } from "../../../application/ports/Readiness.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { defaultMaxConnections, divideConnections } from "./connection/ConnectionBudget.ts"
import { type DatabaseServer, makeDatabaseServer } from "./connection/DatabaseServer.ts"
import type { Query } from "./driver/Query.ts"
import { makeQuery } from "./driver/QueryPool.ts"
import { makeSqlErrorHandler, sqlState } from "./driver/SqlErrors.ts"

export interface DatabaseOptions {
  readonly url: Redacted.Redacted
}

type Isolation = "read committed" | "repeatable read" | "serializable"

/** Maximum number of retries of a transaction if concurrent transactions interfere. */
const maxRetries = 9
const retryDelay = Schedule.jittered(Schedule.spaced("50 millis"))

/** Returns true for an error that concurrent changes of the same rows, or a deadlock, can cause. */
export const isConcurrencyError = (error: unknown): boolean =>
  isSqlError(error) && /^(23503|23505|40001|40P01)$/.test(sqlState(error))

/** Runs the statements and transactions of the adapters in this folder. */
export class Database extends Context.Service<
  Database,
  {
    readonly server: DatabaseServer
    /** Runs the queries that need no transaction, except the queries of `queryKeys`. */
    readonly queryReads: Query
    /** Runs key lookups on separate connections, so that a lookup never waits behind a slow query of prompts. */
    readonly queryKeys: Query
    /**
     * Runs `work`, which uses `PgClient`, in one transaction without a statement timeout. If a concurrent transaction
     * interferes, runs the transaction again, at most `maxRetries` times.
     */
    readonly transact: <A, E, R>(
      isolation: Isolation,
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | SqlError, R>
    /** Converts the SQL errors of a transaction to `Unavailable` or a defect, as `SqlErrorHandler` decides. */
    readonly handleSqlErrors: <A, E, R>(
      transaction: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
  }
>()("prompt-retrieval/adapters/outbound/postgres/Database") {
  /**
   * Provides the database of a URL. Opens connections when they are first needed, and reopens lost connections. The
   * layer can therefore be built even while PostgreSQL is down.
   *
   * @param maxConnections the maximum number of connections of the process, including the connections of its change
   * feed; at least `minMaxConnections`
   */
  static readonly layer = (
    options: DatabaseOptions,
    maxConnections = defaultMaxConnections
  ): Layer.Layer<Database | PgClient.PgClient | SqlClient> =>
    Layer.suspend(() => makeLayer(options, maxConnections))

  static readonly layerReadiness: Layer.Layer<Readiness, never, Database> = Layer.effect(
    Readiness,
    Effect.map(Database, ({ queryReads }) => ({
      check: Effect.asVoid(queryReads({ text: "select 1", params: [] }))
    }))
  )
}

const makeLayer = (options: DatabaseOptions, maxConnections: number) => {
  const server = makeDatabaseServer(options.url)
  const { config } = server
  const connections = divideConnections(maxConnections)
  return Layer.effect(
    Database,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const onSqlError = makeSqlErrorHandler()
      const makePool = (name: string, maxConnections: number) =>
        makeQuery(config, name, maxConnections, onSqlError, server.setUpSession)
      const handleSqlErrors = <A, E, R>(transaction: Effect.Effect<A, E | SqlError, R>) =>
        Effect.catchIf(transaction, isSqlError, onSqlError)
      return Database.of({
        server,
        queryReads: yield* makePool("read", connections.prompts),
        queryKeys: yield* makePool("lookup", connections.keys),
        transact: (isolation, work) =>
          sql
            .unsafe(`set transaction isolation level ${isolation}`)
            .pipe(
              Effect.andThen(sql`set local statement_timeout = 0`),
              Effect.andThen(work),
              sql.withTransaction,
              Effect.retry({ times: maxRetries, while: isConcurrencyError, schedule: retryDelay })
            ),
        handleSqlErrors
      })
    })
  ).pipe(
    Layer.provideMerge(
      PgClient.layer({
        ...config,
        // A pooler can run each transaction in another session, where the prepared statements do not exist.
        prepare: false,
        maxConnections: connections.transactions
      })
    ),
    Layer.orDie
  )
}
