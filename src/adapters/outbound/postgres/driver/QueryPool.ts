import type * as PgClient from "@effect/sql-pg/PgClient"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { runUntil } from "../../../../application/support/Deadline.ts"
import { ConnectionGenerations } from "../connection/ConnectionGenerations.ts"
import { multiplexConcurrency } from "./PoolConfig.ts"
import { makePoolGauges, type PoolGauges, type SetPhase } from "./PoolGauges.ts"
import type { Query, Row, Statement } from "./Query.ts"
import type { SetUpSession } from "../connection/SessionSetup.ts"
import { isConnectionLost } from "./SqlErrors.ts"
import {
  connectTimeoutError,
  type Deadlines,
  defaultDeadlines,
  poolExhaustedError,
  queryTimeoutError
} from "./Timeouts.ts"
import type { UnavailableMapper } from "./UnavailableMapper.ts"

interface InFlightQuery {
  readonly statement: Statement
  readonly setPhase: SetPhase
  /** The connection that the latest attempt uses, once it has one. */
  connection: PgConnection | undefined
}

/**
 * Runs queries on the connections of one pool. A query fails after `connectMs` without a connection and after
 * another `queryMs` without a response. A connection that missed the second deadline is discarded, because its
 * peer may be silently gone. The connections must be multiplexed: only then can the driver be interrupted without
 * waiting for the server.
 */
class QueryPool {
  readonly #pool: PgPool.PgPool
  readonly #gauges: PoolGauges
  /** Maximum number of statements that the connections run at once. */
  readonly #limit: number
  readonly #setUpSession: SetUpSession
  readonly #deadlines: Deadlines
  readonly #generations = new ConnectionGenerations()
  /**
   * Maps each connection whose session is set up to true if the session belongs to this connection alone. Statements
   * on other connections are not prepared, because a pooler may run each of them in another session.
   */
  readonly #hasOwnSession = new WeakMap<PgConnection, boolean>()

  constructor(
    pool: PgPool.PgPool,
    gauges: PoolGauges,
    limit: number,
    setUpSession: SetUpSession,
    deadlines: Deadlines
  ) {
    this.#deadlines = deadlines
    this.#pool = pool
    this.#gauges = gauges
    this.#limit = limit
    this.#setUpSession = setUpSession
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
      const attempts = this.#pool
        .use((connection) => this.#send(query, connection))
        .pipe(Effect.catchIf(isConnectionLost, () => this.#retryOnFreshConnection(query)))
      return this.#withinDeadlines(query, attempts).pipe(
        Effect.onExit(() => Effect.sync(() => query.setPhase(undefined))),
        // The driver keeps the result until its connection is idle, which may never happen. Removing the rows frees
        // them.
        Effect.map(({ rows }) => (rows as Array<Row>).splice(0))
      )
    })
  }

  /**
   * Sends a query's statement. The first statement on a connection also sets up the session, in the same round trip.
   * If the set-up fails, the query fails too, because the connection may lead to another server.
   */
  #send(query: InFlightQuery, connection: PgConnection) {
    const hasOwnSession = this.#hasOwnSession.get(connection)
    this.#generations.add(connection)
    query.connection = connection
    query.setPhase("running")
    const { text, params } = query.statement
    const result = connection.query(text, params, hasOwnSession === true)
    if (hasOwnSession !== undefined) return result
    const setUp = Effect.map(this.#setUpSession(connection), (isOwn) =>
      this.#hasOwnSession.set(connection, isOwn)
    )
    return Effect.zipWith(setUp, result, (_, result) => result, { concurrent: true })
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
      duration: this.#deadlines.connectMs,
      orElse: () => this.#failWithoutConnection
    })
  }

  /** Fails with the reason why there is no connection for a query. */
  get #failWithoutConnection(): Effect.Effect<never, SqlError> {
    return Effect.suspend(() =>
      Effect.fail(this.#gauges.running() < this.#limit ? connectTimeoutError : poolExhaustedError)
    )
  }

  /** Runs the attempts at a query, and interrupts them once the query has missed one of its deadlines. */
  #withinDeadlines<A>(
    query: InFlightQuery,
    attempts: Effect.Effect<A, SqlError>
  ): Effect.Effect<A, SqlError> {
    const { connectMs, queryMs } = this.#deadlines
    return runUntil(attempts, (end) => {
      let timer = setTimeout(() => {
        if (query.connection === undefined) end(this.#failWithoutConnection)
        else timer = setTimeout(() => end(this.#failAfterQueryTimeout(query)), queryMs)
      }, connectMs)
      return () => clearTimeout(timer)
    })
  }

  #failAfterQueryTimeout({ connection }: InFlightQuery): Effect.Effect<never, SqlError> {
    return Effect.andThen(
      connection === undefined ? Effect.void : this.#pool.invalidate(connection),
      Effect.fail(queryTimeoutError)
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
  mapToUnavailable: UnavailableMapper,
  setUpSession: SetUpSession,
  deadlines: Deadlines = defaultDeadlines
): Effect.Effect<Query, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const limit = maxConnections * multiplexConcurrency
    const connections = yield* PgPool.make({ ...config, maxConnections })
    const gauges = yield* makePoolGauges(pool, limit)
    const queries = new QueryPool(connections, gauges, limit, setUpSession, deadlines)
    return (statement) => mapToUnavailable(queries.run(statement))
  })
