import type * as PgClient from "@effect/sql-pg/PgClient"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { ConnectionGenerations } from "./ConnectionGenerations.ts"
import { isEmbedded, multiplexConcurrency } from "./PoolConfig.ts"
import { makePoolGauges, type PoolGauges, type SetPhase } from "./PoolGauges.ts"
import type { Query, Row, Statement } from "./Query.ts"
import { isConnectionLost } from "./SqlErrors.ts"
import {
  connectTimeout,
  connectTimeoutError,
  poolExhaustedError,
  queryTimeout,
  queryTimeoutError,
  statementTimeoutMs
} from "./Timeouts.ts"
import type { UnavailableMapper } from "./UnavailableMapper.ts"

/** A query that has not finished. */
interface InFlightQuery {
  readonly statement: Statement
  readonly setPhase: SetPhase
  /** The connection that the latest attempt uses, once it has one. */
  connection: PgConnection | undefined
}

const setStatementTimeout = `set statement_timeout = ${statementTimeoutMs}`

/**
 * Runs queries on the connections of one pool. A query fails after `connectTimeout` without a connection and after
 * another `queryTimeout` without a response. A connection that missed the second deadline is discarded, because its peer
 * may be silently gone. The connections must be multiplexed: only then can the driver be interrupted without waiting for
 * the server.
 */
class QueryPool {
  readonly #pool: PgPool.PgPool
  readonly #gauges: PoolGauges
  /** The number of statements that the connections run at once. */
  readonly #limit: number
  /** False for the embedded database, which ignores `statement_timeout`. */
  readonly #hasStatementTimeout: boolean
  readonly #generations = new ConnectionGenerations()
  /** The connections on which a statement was sent. */
  readonly #used = new WeakSet<PgConnection>()

  constructor(pool: PgPool.PgPool, gauges: PoolGauges, limit: number, hasStatementTimeout: boolean) {
    this.#pool = pool
    this.#gauges = gauges
    this.#limit = limit
    this.#hasStatementTimeout = hasStatementTimeout
  }

  /** Runs a query, a second time if its connection is lost. */
  run(statement: Statement) {
    return Effect.suspend(() => {
      const query: InFlightQuery = {
        statement,
        setPhase: this.#gauges.addStatement(),
        connection: undefined
      }
      query.setPhase("waiting")
      return this.#pool
        .use((connection) => this.#send(query, connection))
        .pipe(
          Effect.catchIf(isConnectionLost, () => this.#retryOnFreshConnection(query)),
          Effect.raceFirst(this.#failAfterDeadlines(query)),
          Effect.onExit(() => Effect.sync(() => query.setPhase(undefined))),
          // The driver keeps the result until its connection is idle, which may be never. It then keeps no rows.
          Effect.map(({ rows }) => (rows as Array<Row>).splice(0))
        )
    })
  }

  /** Sends a query's statement; the first one on a connection sets the statement timeout in the same round trip. */
  #send(query: InFlightQuery, connection: PgConnection) {
    const isFirst = this.#hasStatementTimeout && !this.#used.has(connection)
    this.#used.add(connection)
    this.#generations.add(connection)
    query.connection = connection
    query.setPhase("running")
    const result = connection.query(query.statement.text, query.statement.params)
    return isFirst
      ? Effect.zipWith(connection.query(setStatementTimeout, []), result, (_, result) => result, {
          concurrent: true
        })
      : result
  }

  #retryOnFreshConnection(query: InFlightQuery) {
    return Effect.suspend(() => {
      query.setPhase("waiting")
      const discard = query.connection === undefined ? Effect.void : this.#discardLost(query.connection)
      const retry = Effect.flatMap(this.#acquireFreshWithin, (connection) => this.#send(query, connection))
      return Effect.andThen(discard, Effect.scoped(retry))
    })
  }

  #discardLost(connection: PgConnection): Effect.Effect<void> {
    this.#generations.recordLoss(connection)
    return this.#pool.invalidate(connection)
  }

  /** Acquires a connection of the latest generation; discards all others. */
  get #acquireFresh(): Effect.Effect<PgConnection, SqlError, Scope.Scope> {
    return Effect.flatMap(this.#pool.get, (connection) =>
      this.#generations.isLatest(connection)
        ? Effect.succeed(connection)
        : Effect.andThen(this.#pool.invalidate(connection), this.#acquireFresh)
    )
  }

  get #acquireFreshWithin(): Effect.Effect<PgConnection, SqlError, Scope.Scope> {
    return Effect.timeoutOrElse(this.#acquireFresh, {
      duration: connectTimeout,
      orElse: () => this.#failWithoutConnection
    })
  }

  /** Fails with the reason why there is no connection for a query. */
  get #failWithoutConnection(): Effect.Effect<never, SqlError> {
    return Effect.suspend(() =>
      Effect.fail(this.#gauges.running() < this.#limit ? connectTimeoutError : poolExhaustedError)
    )
  }

  /** Fails once a query has missed one of its deadlines. */
  #failAfterDeadlines(query: InFlightQuery): Effect.Effect<never, SqlError> {
    return Effect.andThen(
      Effect.sleep(connectTimeout),
      Effect.suspend(() =>
        query.connection === undefined ? this.#failWithoutConnection : this.#failAfterQueryTimeout(query)
      )
    )
  }

  #failAfterQueryTimeout(query: InFlightQuery): Effect.Effect<never, SqlError> {
    return Effect.sleep(queryTimeout).pipe(
      Effect.andThen(
        Effect.suspend(() =>
          query.connection === undefined ? Effect.void : this.#pool.invalidate(query.connection)
        )
      ),
      Effect.andThen(Effect.fail(queryTimeoutError))
    )
  }
}

/**
 * Opens a pool of connections until the scope closes, and returns the function that runs queries on it.
 *
 * @param pool the pool's name in metrics
 */
export const makeQuery = (
  config: PgClient.PgPoolConfig,
  pool: string,
  maxConnections: number,
  mapToUnavailable: UnavailableMapper
): Effect.Effect<Query, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const limit = maxConnections * multiplexConcurrency
    const connections = yield* PgPool.make({ ...config, maxConnections })
    const gauges = yield* makePoolGauges(pool, limit)
    const queries = new QueryPool(connections, gauges, limit, !isEmbedded(config))
    return (statement) => mapToUnavailable(queries.run(statement))
  })
