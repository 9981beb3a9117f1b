import * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { largeBytes } from "../../../application/LargeReadPolicy.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { makeColumnTypes } from "./connection/ColumnTypes.ts"
import { type DatabaseOptions, makePoolConfig } from "./connection/PoolConfig.ts"
import type { Query } from "./connection/Query.ts"
import { makeQuery } from "./connection/QueryPool.ts"
import { makeUnavailableMapper } from "./connection/UnavailableMapper.ts"

export type { DatabaseOptions }

/**
 * The connections of each pool. A service, with its change feed and transactions, uses at most 12: HTTP reads use
 * `largePrompts` in the worker thread only.
 */
const connections = { prompts: 3, largePrompts: 1, keys: 2 } as const

/** PostgreSQL, as the adapters of this folder use it. */
export class Database extends Context.Service<
  Database,
  {
    /** Queries everything but large prompts and keys. */
    readonly queryPrompts: Query
    /** Queries large prompts and versions on a separate connection: no other query waits while their rows are sent. */
    readonly queryLargePrompts: Query
    /** Queries keys on separate connections: a key lookup never waits behind a slow query of prompts. */
    readonly queryKeys: Query
    /**
     * Runs statements of `PgClient` in one transaction without a statement timeout. SQL errors that are not an outage are
     * defects, unless `work` catches them.
     */
    readonly transact: <A, E, R>(
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
  }
>()("prompt-retrieval/PostgresDatabase") {
  /** Connections are opened when they are first needed and reopened when they are lost: building this never fails. */
  static readonly layer = (
    options: DatabaseOptions
  ): Layer.Layer<Database | PgClient.PgClient | SqlClient> => {
    const config = makePoolConfig(options)
    const queryConfig = { ...config, types: makeColumnTypes(largeBytes) }
    return Layer.effect(
      Database,
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const mapToUnavailable = makeUnavailableMapper()
        return Database.of({
          queryPrompts: yield* makeQuery(queryConfig, "read", connections.prompts, mapToUnavailable),
          queryLargePrompts: yield* makeQuery(
            { ...config, types: makeColumnTypes(largeBytes, "large") },
            "read",
            connections.largePrompts,
            mapToUnavailable
          ),
          queryKeys: yield* makeQuery(queryConfig, "lookup", connections.keys, mapToUnavailable),
          transact: (work) =>
            mapToUnavailable(sql.withTransaction(Effect.andThen(sql`set local statement_timeout = 0`, work)))
        })
      })
    ).pipe(Layer.provideMerge(PgClient.layer(config)), Layer.orDie)
  }
}
