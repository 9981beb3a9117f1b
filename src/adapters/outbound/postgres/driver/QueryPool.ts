import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgPool from "@effect/sql-pg/PgPool"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import type { SqlError } from "effect/sql/SqlError"
import { metricRegistry } from "../../../../application/observability/Instrumentation.ts"
import { makeWorkspacePermits, runUntil, type WithPermit } from "../../../../application/reading/ReadGate.ts"
import type { Query, Row, Statement } from "./Query.ts"
import type { SetUpSession } from "../connection/SessionSetup.ts"
import { isConnectionLost } from "./SqlErrors.ts"
import { connectTimeoutError, connectTimeoutMs, poolExhaustedError } from "./Timeouts.ts"
import type { SqlErrorHandler } from "./SqlErrorHandler.ts"

/** A statement first waits for a connection, then runs. */
type StatementPhase = "waiting" | "running"

/** Moves a statement to a phase; `undefined` means that the statement is done. */
type SetPhase = (phase: StatementPhase | undefined) => void

interface PoolGauges {
  readonly running: () => number
  /** Adds a statement. The statement is in no phase until the returned function is called. */
  readonly addStatement: () => SetPhase
}

const makeGauge = (pool: string, name: string, description: string) => {
  const gauge = Metric.gauge(name, { description, attributes: { pool } })
  return (change: number): void => gauge.modifyUnsafe(change, metricRegistry)
}

/**
 * Registers the gauges of a pool that runs at most `limit` statements at the same time. Removes the pool from the
 * gauges when the scope closes.
 */
const makePoolGauges = (pool: string, limit: number): Effect.Effect<PoolGauges, never, Scope.Scope> => {
  const changeMax = makeGauge(
    pool,
    "prompt_retrieval_postgres_statements_max",
    "Maximum number of statements that the pool's connections run at the same time"
  )
  const changeGauge = {
    waiting: makeGauge(
      pool,
      "prompt_retrieval_postgres_statements_waiting",
      "Statements that wait for a connection of the pool"
    ),
    running: makeGauge(
      pool,
      "prompt_retrieval_postgres_statements_running",
      "Statements in flight on the pool's connections"
    )
  }
  const counts = { waiting: 0, running: 0 }
  const changeCount = (phase: StatementPhase, change: 1 | -1): void => {
    counts[phase] += change
    changeGauge[phase](change)
  }
  const gauges: PoolGauges = {
    running: () => counts.running,
    addStatement: () => {
      let phase: StatementPhase | undefined
      return (next) => {
        if (phase !== undefined) changeCount(phase, -1)
        if (next !== undefined) changeCount(next, 1)
        phase = next
      }
    }
  }
  return Effect.acquireRelease(
    Effect.sync(() => {
      changeMax(limit)
      return gauges
    }),
    () => Effect.sync(() => changeMax(-limit))
  )
}

/**
 * Decides which connections of a pool can be trusted after a connection was lost. When one connection is lost, the
 * other connections are often lost too, but the pool does not know this yet. The loss of a connection of the latest
 * generation therefore starts a new generation, which contains only connections that are first acquired after the loss.
 */
class ConnectionGenerations {
  #latest = 0
  readonly #generations = new WeakMap<PgConnection, number>()

  /** Adds a connection that has no generation yet to the latest generation. */
  add(connection: PgConnection): void {
    if (!this.#generations.has(connection)) this.#generations.set(connection, this.#latest)
  }

  /** Returns true if a connection belongs to the latest generation. Adds the connection if it has no generation yet. */
  isLatest(connection: PgConnection): boolean {
    this.add(connection)
    return this.#generations.get(connection) === this.#latest
  }

  /** Starts a new generation if the lost connection belongs to the latest generation. */
  recordLoss(connection: PgConnection): void {
    if (this.isLatest(connection)) this.#latest++
  }
}

interface InFlightQuery {
  readonly statement: Statement
  readonly setPhase: SetPhase
  /** The connection of the latest attempt; undefined until the first attempt has a connection. */
  connection: PgConnection | undefined
}

/**
 * Runs queries on the connections of one pool. A query fails if it has no connection after `connectTimeout`. If the
 * caller of a running query is interrupted, for example by the deadline of its request, the pool discards the
 * connection, because its server may be silently gone. The connections must be multiplexed: only those can be
 * interrupted without waiting for the server.
 */
class QueryPool {
  readonly #pool: PgPool.PgPool
  readonly #gauges: PoolGauges
  readonly #maxConnections: number
  readonly #setUpSession: SetUpSession
  readonly #generations = new ConnectionGenerations()
  /**
   * For each connection whose session is set up: true if the session belongs to this connection alone. Statements on
   * other connections are not prepared, because a pooler may run each statement in another session.
   */
  readonly #hasOwnSession = new WeakMap<PgConnection, boolean>()
  /**
   * Lets a workspace have fewer statements in flight than the pool has connections, if the pool has several. A slow
   * statement blocks its whole connection, so one connection stays free for other workspaces.
   */
  readonly #withPermit: WithPermit

  constructor(pool: PgPool.PgPool, gauges: PoolGauges, maxConnections: number, setUpSession: SetUpSession) {
    this.#pool = pool
    this.#gauges = gauges
    this.#maxConnections = maxConnections
    this.#setUpSession = setUpSession
    this.#withPermit = makeWorkspacePermits(Math.max(1, maxConnections - 1))
  }

  /**
   * Runs a statement, after the statement has waited for a permit of its workspace. If the connection is lost, runs the
   * statement a second time on another connection.
   */
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
      const { workspace } = statement
      const permitted = workspace === undefined ? attempts : this.#withPermit(workspace, attempts)
      return this.#withConnectTimeout(query, permitted).pipe(
        Effect.onExit(() => Effect.sync(() => query.setPhase(undefined))),
        Effect.map(({ rows }) => rows as ReadonlyArray<Row>)
      )
    })
  }

  /**
   * Sends a query's statement. The first statement on a connection also sets up the session, in the same round trip. If
   * the setup fails, the query fails too, because the connection may lead to a server that must not run it.
   */
  #send(query: InFlightQuery, connection: PgConnection) {
    const hasOwnSession = this.#hasOwnSession.get(connection)
    this.#generations.add(connection)
    query.connection = connection
    query.setPhase("running")
    const { text, params } = query.statement
    const result = Effect.onInterrupt(connection.query(text, params, hasOwnSession === true), () =>
      this.#pool.invalidate(connection)
    )
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
      const retry = Effect.flatMap(this.#acquireFresh, (connection) => this.#send(query, connection))
      return Effect.andThen(discard, Effect.scoped(retry))
    })
  }

  #discardLost(connection: PgConnection): Effect.Effect<void> {
    this.#generations.recordLoss(connection)
    return this.#pool.invalidate(connection)
  }

  /** Acquires a connection of the latest generation. Discards connections of earlier generations. */
  readonly #acquireFresh: Effect.Effect<PgConnection, SqlError, Scope.Scope> = Effect.suspend(() =>
    Effect.flatMap(this.#pool.get, (connection) =>
      this.#generations.isLatest(connection)
        ? Effect.succeed(connection)
        : Effect.andThen(this.#pool.invalidate(connection), this.#acquireFresh)
    )
  )

  readonly #failWithoutConnection: Effect.Effect<never, SqlError> = Effect.suspend(() =>
    Effect.fail(this.#gauges.running() < this.#maxConnections ? connectTimeoutError : poolExhaustedError)
  )

  /** Fails if the query has no connection after `connectTimeout`. This time includes the wait for a permit. */
  #withConnectTimeout<A>(
    query: InFlightQuery,
    attempts: Effect.Effect<A, SqlError>
  ): Effect.Effect<A, SqlError> {
    return runUntil(attempts, (end) => {
      const timer = setTimeout(() => {
        if (query.connection === undefined) end(this.#failWithoutConnection)
      }, connectTimeoutMs)
      return () => clearTimeout(timer)
    })
  }
}

/**
 * Opens a pool of connections, which closes with the scope. Returns the function that runs queries on the pool.
 *
 * @param pool the pool's name in metrics
 */
export const makeQuery = (
  config: PgClient.PgPoolConfig,
  pool: string,
  maxConnections: number,
  onSqlError: SqlErrorHandler,
  setUpSession: SetUpSession
): Effect.Effect<Query, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* PgPool.make({ ...config, maxConnections })
    const gauges = yield* makePoolGauges(pool, maxConnections)
    const queries = new QueryPool(connections, gauges, maxConnections, setUpSession)
    return (statement) => Effect.catch(queries.run(statement), onSqlError)
  })
